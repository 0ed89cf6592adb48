// SPDX-License-Identifier: Apache-2.0
#include "hub/bucket_listing.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "hub/limits.h"

namespace tessera::hub {
namespace {

/// The text between <name> and </name>, from `at` on, which moves behind it.
std::optional<std::string_view> TakeElement(std::string_view text, std::string_view name,
                                            size_t* at) {
  const std::string open = fmt::format("<{}>", name);
  const std::string close = fmt::format("</{}>", name);
  const size_t begin = text.find(open, *at);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = text.find(close, begin + open.size());
  if (end == std::string_view::npos) return std::nullopt;
  *at = end + close.size();
  return text.substr(begin + open.size(), end - begin - open.size());
}

std::optional<std::string_view> Element(std::string_view text, std::string_view name) {
  size_t at = 0;
  return TakeElement(text, name, &at);
}

/// Of the five entities and ASCII by number; others stay as they are and fit no name of ours.
std::string Unescape(std::string_view text) {
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'},   {"&lt;", '<'},  {"&gt;", '>'},  {"&quot;", '"'},
      {"&apos;", '\''}, {"&#34;", '"'}, {"&#38;", '&'}, {"&#39;", '\''}};
  std::string plain;
  while (!text.empty()) {
    bool found = false;
    for (const auto& [entity, character] : kEntities) {
      if (!text.starts_with(entity)) continue;
      plain += character;
      text.remove_prefix(entity.size());
      found = true;
      break;
    }
    if (found) continue;
    plain += text.front();
    text.remove_prefix(1);
  }
  return plain;
}

}  // namespace

Result<BucketListing> ParseBucketListing(std::string_view text) {
  if (text.find("<ListBucketResult") == std::string_view::npos)
    return Fail(InvalidArgument("expected a ListBucketResult"));
  BucketListing listing;
  size_t at = 0;
  while (const auto row = TakeElement(text, "Contents", &at)) {
    const auto key = Element(*row, "Key");
    const auto size = Element(*row, "Size");
    if (!key || !size) return Fail(InvalidArgument("an object has no Key or no Size"));
    BucketListing::Object object;
    object.key = Unescape(*key);
    const auto [end, error] =
        std::from_chars(size->data(), size->data() + size->size(), object.bytes);
    if (error != std::errc() || end != size->data() + size->size() || object.bytes > kMaxFileBytes)
      return Fail(InvalidArgument("an object has a Size that is none"));
    object.etag = Unescape(Element(*row, "ETag").value_or(""));
    listing.objects.push_back(std::move(object));
    if (listing.objects.size() > kMaxListedFiles)
      return Fail(ResourceExhausted(
          fmt::format("the folder has more than the limit of {} objects", kMaxListedFiles)));
  }
  if (Element(text, "IsTruncated") == "true") {
    listing.next = Unescape(Element(text, "NextContinuationToken").value_or(""));
    if (listing.next.empty())
      return Fail(InvalidArgument("there is more, but NextContinuationToken is missing"));
  }
  return listing;
}

}  // namespace tessera::hub
