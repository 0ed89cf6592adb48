// SPDX-License-Identifier: Apache-2.0
#include "hub/fetch_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/utf8.h"

namespace tessera::hub {
namespace {

// Written at once, with one line of the journal: few enough system calls, little to lose.
constexpr size_t kWriteBytes = 256 << 10;

/// The body of one answer on its way to the file.
class Body {
 public:
  Body(const DownloadFile& file, ByteRange range, PartialFile& part, const FetchContext& context)
      : file_(file), range_(range), part_(part), context_(context), next_(range.begin) {
    buffer_.reserve(kWriteBytes);
  }

  /// Decides where in the file the body begins.
  Status Begin(const HttpHead& head) {
    if (!file_.validator.empty() && ValidatorIn(head) != file_.validator) return Changed();
    if (head.status == 206) return BeginPart(head);
    uint64_t bytes = file_.bytes;
    if (const std::string* text = head.Find("content-length"))
      (void)std::from_chars(text->data(), text->data() + text->size(), bytes);
    if (bytes != file_.bytes) return WrongSize(bytes);
    skip_ = range_.begin;  // A server without ranges: what is there already goes by.
    return {};
  }

  Status Take(ByteSpan bytes) {
    if (context_.stop->load(std::memory_order_relaxed)) return Cancelled("stopped");
    context_.on_bytes(bytes.size());
    const uint64_t skipped = std::min<uint64_t>(skip_, bytes.size());
    skip_ -= skipped;
    bytes = bytes.subspan(skipped);
    const uint64_t wanted = range_.end - next_ - buffer_.size();
    const bool is_more = bytes.size() > wanted;
    bytes = bytes.first(std::min<uint64_t>(bytes.size(), wanted));
    while (!bytes.empty()) {
      const size_t piece = std::min(bytes.size(), kWriteBytes - buffer_.size());
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(piece));
      bytes = bytes.subspan(piece);
      if (buffer_.size() == kWriteBytes) TESSERA_RETURN_IF_ERROR(Flush());
    }
    if (!is_more) return {};
    TESSERA_RETURN_IF_ERROR(Flush());
    return Cancelled("the range is complete");  // The rest of a whole file is somebody else's.
  }

  /// Also after a transfer that broke: what came counts.
  Status Flush() {
    if (buffer_.empty()) return {};
    if (Status status = part_.Write(next_, buffer_); !status.ok()) {
      disk_failed_ = true;
      return status;
    }
    next_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  uint64_t next() const { return next_; }
  bool is_changed() const { return is_changed_; }
  bool disk_failed() const { return disk_failed_; }
  bool is_nonsense() const { return is_nonsense_; }

 private:
  static std::string_view ValidatorIn(const HttpHead& head) {
    const std::string* text = head.Find("etag");
    if (text == nullptr) text = head.Find("last-modified");
    return text != nullptr ? std::string_view(*text) : std::string_view();
  }

  Status Changed() {
    is_changed_ = true;
    return FailedPrecondition(
        fmt::format("{} changed while it was downloaded", WithoutQuery(file_.url)));
  }

  Status BeginPart(const HttpHead& head) {
    const std::string* text = head.Find("content-range");
    const auto got = text != nullptr ? ParseContentRange(*text) : std::nullopt;
    if (!got || got->range.begin != range_.begin) {
      is_nonsense_ = true;
      return Unavailable(
          fmt::format("{} answers another range than was asked for", WithoutQuery(head.url)));
    }
    return got->total == file_.bytes ? Status() : WrongSize(got->total);
  }

  Status WrongSize(uint64_t bytes) const {
    return DataLoss(fmt::format("{} has {} bytes, but {} were announced: nothing of it is used",
                                file_.name, bytes, file_.bytes));
  }

  const DownloadFile& file_;
  const ByteRange range_;
  PartialFile& part_;
  const FetchContext& context_;
  std::vector<std::byte> buffer_;
  uint64_t next_;
  uint64_t skip_ = 0;
  bool is_changed_ = false;
  bool disk_failed_ = false;
  bool is_nonsense_ = false;
};

/// What an answer other than 2xx means for the range.
FetchOutcome OutcomeOfAnswer(const DownloadFile& file, const HttpHead& head) {
  FetchOutcome outcome;
  const std::string* message = head.Find("x-error-message");
  const std::string detail =
      message != nullptr ? ": " + EscapeNonUtf8(message->substr(0, 200)) : "";
  const std::string text =
      fmt::format("{}: {} answers {}{}", file.name, WithoutQuery(head.url), head.status, detail);
  const bool is_own_address = OriginOf(head.url) == OriginOf(file.url);
  switch (head.status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      outcome.end = FetchEnd::kRetry;
      outcome.wait = RetryAfter(head);
      outcome.status = Unavailable(text);
      return outcome;
    case 416:
      outcome.end = FetchEnd::kRelocate;
      outcome.status = DataLoss(fmt::format(
          "{}, so it has fewer than the {} bytes that were announced", text, file.bytes));
      return outcome;
    case 401:
    case 403:
      outcome.status = is_own_address && file.explain ? file.explain(head) : PermissionDenied(text);
      break;
    case 404:
    case 410:
      // Without the hub's own word for it, it says nothing of the repository.
      outcome.status = is_own_address && file.explain && head.Find("x-error-code") != nullptr
                           ? file.explain(head)
                           : NotFound(text);
      break;
    default:
      outcome.status = Unavailable(text);
      break;
  }
  outcome.end = is_own_address ? FetchEnd::kFailed : FetchEnd::kRelocate;
  return outcome;
}

FetchOutcome OutcomeOfTransfer(const Status& status, const Body& body,
                               const std::atomic<bool>& stop) {
  FetchOutcome outcome;
  outcome.status = status;
  outcome.end = FetchEnd::kFailed;
  if (body.disk_failed() || stop.load()) return outcome;
  if (body.is_changed())
    outcome.end = FetchEnd::kChanged;
  else if (body.is_nonsense())
    outcome.end = FetchEnd::kRelocate;
  else if (status.code() == Code::kUnavailable)
    outcome.end = FetchEnd::kRetry;
  return outcome;
}

}  // namespace

FetchOutcome FetchRange(Http& http, const DownloadFile& file, const std::string& location,
                        ByteRange range, PartialFile& part, const FetchContext& context) {
  HttpRequest request;
  request.url = location.empty() ? file.url : location;
  if (location.empty() || OriginOf(location) == OriginOf(file.url)) {
    request.bearer = file.bearer;
    request.aws = file.aws;
  }
  if (range.begin > 0 || range.end < file.bytes) {
    request.range = range;
    // A weak validator ("W/...") may not stand there; answers are compared in any case.
    if (!file.validator.starts_with("W/")) request.if_range = file.validator;
  }
  Body body(file, range, part, context);
  std::string url;
  const HttpSink sink{[&](const HttpHead& head) {
                        url = head.url;
                        return body.Begin(head);
                      },
                      [&](ByteSpan bytes) { return body.Take(bytes); }};
  auto head = Get(http, std::move(request), sink);
  const Status flushed = body.Flush();
  FetchOutcome outcome;
  if (body.next() == range.end && flushed.ok()) {
    outcome.location = url;
  } else if (!flushed.ok()) {
    outcome.end = FetchEnd::kFailed;
    outcome.status = flushed;
  } else if (!head.has_value()) {
    outcome = OutcomeOfTransfer(head.error(), body, *context.stop);
  } else if (!head->ok()) {
    outcome = OutcomeOfAnswer(file, *head);
  } else {
    outcome.end = FetchEnd::kRetry;
    outcome.status = Unavailable(fmt::format("{}: {} ended before the end of the range", file.name,
                                             WithoutQuery(head->url)));
  }
  outcome.next = body.next();
  return outcome;
}

}  // namespace tessera::hub
