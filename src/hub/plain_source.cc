// SPDX-License-Identifier: Apache-2.0
#include "hub/plain_source.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/hash.h"
#include "base/utf8.h"
#include "hub/bucket_listing.h"
#include "hub/limits.h"
#include "hub/patience.h"

namespace tessera::hub {
namespace {

/// Pages of a listing; each has a thousand objects.
constexpr int kMaxPages = 32;

std::string Digits(std::string_view text) {
  return Sha256Hex(AsBytes(text)).substr(0, 40);
}

void Add(PlainSource* source, std::string name, uint64_t bytes, PlainSource::File file) {
  RepositoryFile row;
  row.bytes = bytes;
  row.git_sha1 = Digits(fmt::format("{}\n{}\n{}", name, bytes, file.validator));
  row.name = name;
  source->listing.files.push_back(std::move(row));
  source->files[std::move(name)] = std::move(file);
}

void Seal(PlainSource* source, const RepositoryName& name) {
  source->listing.repository = PlainRepository(name);
  std::string all;
  for (const RepositoryFile& file : source->listing.files) all += file.git_sha1 + "\n";
  source->listing.commit = Digits(all);
}

/// What an answer that is no 2xx means; `what` is the source as people know it.
Status RefusalOf(const HttpHead& head, const std::string& what) {
  const std::string text = fmt::format("{} answers {}", what, head.status);
  if (head.status == 408 || head.status == 429 || head.status >= 500) return Unavailable(text);
  if (head.status == 404 || head.status == 410) return NotFound(text);
  if (!what.starts_with("s3:"))
    return head.status == 401 || head.status == 403 ? PermissionDenied(text)
                                                    : FailedPrecondition(text);
  const auto says = [&](std::string_view code) {
    return head.error_text.find(fmt::format("<Code>{}</Code>", code)) != std::string::npos;
  };
  if (says("RequestTimeTooSkewed"))
    return FailedPrecondition(text +
                              ": this machine's clock is wrong, and signatures have the time in "
                              "them: set it (date shows it)");
  const std::string* region = head.Find("x-amz-bucket-region");
  if (region != nullptr &&
      (head.status / 100 == 3 || head.status == 400 || says("AuthorizationHeaderMalformed")))
    return FailedPrecondition(fmt::format("{}: the bucket is in another region: set AWS_REGION={}",
                                          text, EscapeNonUtf8(region->substr(0, 40))));
  if (head.status == 401 || head.status == 403)
    return PermissionDenied(
        text + ": set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that may read it");
  return FailedPrecondition(text);
}

/// The answer of one question, or why it has none.
template <class Ask>
Result<HttpHead> AskPatiently(const Settings& settings, const std::string& what, const Ask& ask) {
  for (Patience patience(settings);;) {
    auto head = ask();
    Status status;
    std::optional<std::chrono::milliseconds> wait;
    if (!head.has_value()) {
      status = head.error();
    } else if (head->ok()) {
      return head;
    } else {
      wait = RetryAfter(*head);
      status = RefusalOf(*head, what);
    }
    if (status.code() != Code::kUnavailable || !patience.Wait(wait)) return Fail(status);
  }
}

/// The first byte tells size and validator; an address that is signed for GET takes no HEAD.
Result<PlainSource> ProbeUrl(Http& http, const Settings& settings, const RepositoryName& name) {
  HttpRequest request;
  request.url = name.url;
  request.range = ByteRange{0, 1};
  HttpHead seen;
  const auto ask = [&]() -> Result<HttpHead> {
    seen = {};
    const HttpSink sink{[&](const HttpHead& head) -> Status {
                          seen = head;
                          // A whole file is not wanted yet.
                          return head.status == 206 ? Status() : Cancelled("seen");
                        },
                        [](ByteSpan) -> Status { return {}; }};
    auto head = Get(http, request, sink);
    if (!head.has_value() && seen.status != 0) return seen;
    return head;
  };
  TESSERA_ASSIGN_OR_RETURN(const HttpHead head, AskPatiently(settings, ShownSource(name), ask));
  std::optional<uint64_t> bytes;
  if (const std::string* text = head.Find("content-range"); head.status == 206 && text != nullptr) {
    if (const auto range = ParseContentRange(*text)) bytes = range->total;
  } else if (const std::string* length = head.Find("content-length"); length != nullptr) {
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(length->data(), length->data() + length->size(), value);
    if (error == std::errc() && end == length->data() + length->size()) bytes = value;
  }
  if (!bytes || *bytes > kMaxFileBytes)
    return Fail(
        Unimplemented(fmt::format("{} does not say how large the file is", ShownSource(name))));
  const std::string* validator = head.Find("etag");
  if (validator == nullptr) validator = head.Find("last-modified");
  if (validator == nullptr || validator->empty())
    return Fail(Unimplemented(fmt::format(
        "{} does not say which version of the file it gives (neither ETag nor Last-Modified), so "
        "ranges of two could be mixed: download it by other means, and name the file",
        ShownSource(name))));
  const std::string_view path = WithoutQuery(name.url);
  PlainSource source;
  Add(&source, std::string(path.substr(path.rfind('/') + 1)), *bytes, {name.url, *validator});
  TESSERA_RETURN_IF_ERROR(CheckFileName(source.listing.files.front().name));
  Seal(&source, name);
  return source;
}

std::string BucketUrl(const Settings& settings, const std::string& bucket) {
  const AwsSettings& aws = settings.aws;
  return aws.endpoint.empty() ? fmt::format("https://{}.s3.{}.amazonaws.com", bucket, aws.region)
                              : fmt::format("{}/{}", aws.endpoint, bucket);
}

/// A query's value: slashes, too.
std::string EscapeQuery(std::string_view text) {
  std::string escaped = EscapePath(text);
  for (size_t at = 0; (at = escaped.find('/', at)) != std::string::npos; at += 3)
    escaped.replace(at, 1, "%2F");
  return escaped;
}

Result<PlainSource> ReadBucket(Http& http, const Settings& settings, const RepositoryName& name) {
  const std::string base = BucketUrl(settings, name.bucket);
  const bool is_file = name.prefix.ends_with(".gguf");
  const std::string prefix = name.prefix.empty() || is_file ? name.prefix : name.prefix + "/";
  PlainSource source;
  std::string next;
  for (int page = 0; page < kMaxPages; ++page) {
    HttpRequest request;
    // In ascending order of keys: SigV4 signs the query so.
    request.url = fmt::format("{}/?{}list-type=2&prefix={}", base,
                              next.empty() ? "" : "continuation-token=" + EscapeQuery(next) + "&",
                              EscapeQuery(prefix));
    request.aws = &settings.aws;
    request.time_limit = settings.answer_timeout();
    std::string body;
    const auto ask = [&]() -> Result<HttpHead> {
      auto text = GetText(http, request, kMaxListingBytes);
      if (!text.has_value()) return Fail(text.error());
      body = std::move(text->body);
      return std::move(text->head);
    };
    TESSERA_RETURN_IF_ERROR(StatusOf(AskPatiently(settings, ShownSource(name), ask)));
    auto listing = ParseBucketListing(body);
    if (!listing.has_value()) return Fail(listing.error().WithContext(ShownSource(name)));
    for (BucketListing::Object& object : listing->objects) {
      std::string file = is_file ? object.key.substr(object.key.rfind('/') + 1)
                                 : object.key.substr(std::min(prefix.size(), object.key.size()));
      if (!object.key.starts_with(prefix) || (is_file && object.key != prefix)) continue;
      if (!CheckFileName(file).ok() || source.files.contains(file)) continue;
      if (object.etag.empty())
        return Fail(Unimplemented(fmt::format(
            "{}: the store lists objects without ETag, so ranges of two versions could be mixed",
            ShownSource(name))));
      Add(&source, std::move(file), object.bytes,
          {fmt::format("{}/{}", base, EscapePath(object.key)), object.etag});
    }
    next = listing->next;
    if (next.empty()) break;
  }
  if (!next.empty() || source.listing.files.size() > kMaxListedFiles)
    return Fail(ResourceExhausted(
        fmt::format("{} has too many objects: name the model's own folder", ShownSource(name))));
  if (source.listing.files.empty())
    return Fail(NotFound(fmt::format("{} has no objects", ShownSource(name))));
  Seal(&source, name);
  return source;
}

}  // namespace

std::string ShownSource(const RepositoryName& name) {
  if (name.place == Place::kUrl) return std::string(WithoutQuery(name.url));
  return fmt::format("s3://{}/{}", name.bucket, name.prefix);
}

bool IsPlainRepository(std::string_view repository) {
  return repository.starts_with("tessera-url/") || repository.starts_with("tessera-s3/");
}

std::string PlainRepository(const RepositoryName& name) {
  return fmt::format("{}/{}", name.place == Place::kUrl ? "tessera-url" : "tessera-s3",
                     Digits(ShownSource(name)).substr(0, 24));
}

Result<PlainSource> ReadPlainSource(Http& http, const Settings& settings,
                                    const RepositoryName& name) {
  return name.place == Place::kUrl ? ProbeUrl(http, settings, name)
                                   : ReadBucket(http, settings, name);
}

}  // namespace tessera::hub
