// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tessera {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kOutOfRange:
      return "OUT_OF_RANGE";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
  }
  return "UNKNOWN";
}

Status::Status(Code code, std::string message, std::source_location where)
    : rep_(std::make_shared<const Rep>(Rep{code, std::move(message), where, {}})) {
  TESSERA_CHECK(code != Code::kOk);
}

const std::string& Status::message() const {
  static const std::string kEmpty;
  return rep_ ? rep_->message : kEmpty;
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  std::string text;
  for (auto it = rep_->contexts.rbegin(); it != rep_->contexts.rend(); ++it) {
    text += *it;
    text += ": ";
  }
  return text + rep_->message;
}

std::string Status::Place() const {
  if (ok()) return "";
  return fmt::format("{}:{}", rep_->where.file_name(), rep_->where.line());
}

Status Status::WithContext(std::string context) const& {
  if (ok()) return *this;
  Rep rep = *rep_;
  rep.contexts.push_back(std::move(context));
  Status status;
  status.rep_ = std::make_shared<const Rep>(std::move(rep));
  return status;
}

Status Status::WithContext(std::string context) && {
  return std::as_const(*this).WithContext(std::move(context));
}

}  // namespace tessera
