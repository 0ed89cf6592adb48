// SPDX-License-Identifier: Apache-2.0
//
// Status and Result<T>: the only error currency of this tree. A Status holds a code (the
// vocabulary of gRPC), a message that says what was wrong, what was expected and what to do, the
// source place that made it, and contexts added on the way up ("loading shard 3 of 7").
// Success holds no memory. Values are cheap to copy and safe to read from any thread.
//
// We do not throw; exceptions of libraries end at their adapter. CHECK (check.h) is for our own
// bugs, Status for everything that comes from outside.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

enum class Code : uint8_t {
  kOk = 0,
  kCancelled,           // The caller went away or asked to stop.
  kInvalidArgument,     // Wrong whatever the state of the system is: fix the input.
  kDeadlineExceeded,    // Out of time.
  kNotFound,            // A named thing does not exist.
  kAlreadyExists,       // A thing to be made exists.
  kPermissionDenied,    // Known caller, not allowed.
  kUnauthenticated,     // Unknown caller.
  kResourceExhausted,   // Quota, memory, disk, queue: later or with less.
  kFailedPrecondition,  // Right request, wrong state: do something else first.
  kOutOfRange,          // Past the valid range of something that has an end.
  kUnimplemented,       // Known, but not supported here.
  kInternal,            // A broken invariant of ours.
  kUnavailable,         // Not now; retrying may help.
  kDataLoss,            // Bytes are damaged.
};

/// The name users see, e.g. "INVALID_ARGUMENT". Total.
std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  /// Success.
  Status() = default;
  Status(Code code, std::string message,
         std::source_location where = std::source_location::current());

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  /// The message without contexts; empty for success.
  const std::string& message() const;
  /// "loading shard 3 of 7: opening x.irpa: file has 12 bytes, expected at least 88".
  std::string ToString() const;
  /// "status.cc:12" of the place that made the error; empty for success. For logs, not for users.
  std::string Place() const;

  /// Returns this status with `context` put before the message. No effect on success.
  Status WithContext(std::string context) const&;
  Status WithContext(std::string context) &&;

 private:
  struct Rep {
    Code code;
    std::string message;
    std::source_location where;
    std::vector<std::string> contexts;  // Innermost first.
  };
  std::shared_ptr<const Rep> rep_;
};

template <class T>
using Result = std::expected<T, Status>;

// Makers, so that call sites read `return InvalidArgument(fmt::format(...))`.
#define TESSERA_STATUS_MAKER(name)                                                   \
  inline Status name(std::string message,                                            \
                     std::source_location where = std::source_location::current()) { \
    return Status(Code::k##name, std::move(message), where);                         \
  }
TESSERA_STATUS_MAKER(Cancelled)
TESSERA_STATUS_MAKER(InvalidArgument)
TESSERA_STATUS_MAKER(DeadlineExceeded)
TESSERA_STATUS_MAKER(NotFound)
TESSERA_STATUS_MAKER(AlreadyExists)
TESSERA_STATUS_MAKER(PermissionDenied)
TESSERA_STATUS_MAKER(Unauthenticated)
TESSERA_STATUS_MAKER(ResourceExhausted)
TESSERA_STATUS_MAKER(FailedPrecondition)
TESSERA_STATUS_MAKER(OutOfRange)
TESSERA_STATUS_MAKER(Unimplemented)
TESSERA_STATUS_MAKER(Internal)
TESSERA_STATUS_MAKER(Unavailable)
TESSERA_STATUS_MAKER(DataLoss)
#undef TESSERA_STATUS_MAKER

inline std::unexpected<Status> Fail(Status status) {
  return std::unexpected(std::move(status));
}

/// The status of a Result: success or its error.
template <class T>
Status StatusOf(const Result<T>& result) {
  return result.has_value() ? Status() : result.error();
}

namespace status_internal {
/// Converts to Status or to any Result<T>, so that one macro serves both kinds of function.
class Failure {
 public:
  explicit Failure(Status status) : status_(std::move(status)) {}
  operator Status() && { return std::move(status_); }  // NOLINT(google-explicit-constructor)
  template <class T>
  operator Result<T>() && {  // NOLINT(google-explicit-constructor)
    return std::unexpected(std::move(status_));
  }

 private:
  Status status_;
};
}  // namespace status_internal

}  // namespace tessera

#define TESSERA_CONCAT_INNER(a, b) a##b
#define TESSERA_CONCAT(a, b) TESSERA_CONCAT_INNER(a, b)

/// Returns from the enclosing function (Status or Result) if `expr`, a Status, is an error.
#define TESSERA_RETURN_IF_ERROR(expr)                                         \
  do {                                                                        \
    ::tessera::Status tessera_status_ = (expr);                               \
    if (!tessera_status_.ok()) [[unlikely]]                                   \
      return ::tessera::status_internal::Failure(std::move(tessera_status_)); \
  } while (false)

/// Declares or assigns `lhs` from `expr`, a Result, or returns its error.
#define TESSERA_ASSIGN_OR_RETURN(lhs, expr) \
  TESSERA_ASSIGN_OR_RETURN_IMPL(TESSERA_CONCAT(tessera_result_, __LINE__), lhs, expr)
#define TESSERA_ASSIGN_OR_RETURN_IMPL(result, lhs, expr)                   \
  auto result = (expr);                                                    \
  if (!result.has_value()) [[unlikely]]                                    \
    return ::tessera::status_internal::Failure(std::move(result).error()); \
  lhs = *std::move(result)
