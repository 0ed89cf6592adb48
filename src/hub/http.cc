// SPDX-License-Identifier: Apache-2.0
#include "hub/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "hub/limits.h"

namespace tessera::hub {
namespace {

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

const std::string* HttpHead::Find(std::string_view name) const {
  for (auto it = headers.rbegin(); it != headers.rend(); ++it)
    if (it->first == name) return &it->second;
  return nullptr;
}

std::string_view WithoutQuery(std::string_view url) {
  return url.substr(0, url.find_first_of("?#"));
}

std::string OriginOf(std::string_view url) {
  const size_t colon = url.find("://");
  if (colon == std::string_view::npos) return "";
  std::string scheme(url.substr(0, colon));
  std::string_view host = url.substr(colon + 3);
  host = host.substr(0, host.find_first_of("/?#"));
  if (const size_t at = host.rfind('@'); at != std::string_view::npos) host.remove_prefix(at + 1);
  if (host.empty()) return "";
  std::string origin = scheme + "://" + std::string(host);
  std::transform(origin.begin(), origin.end(), origin.begin(), Lower);
  const size_t bracket = host.rfind(']');  // Of an IPv6 address, which has colons of its own.
  const size_t port = host.rfind(':');
  const bool has_port =
      port != std::string_view::npos && (bracket == std::string_view::npos || port > bracket);
  if (!has_port) origin += origin.starts_with("https:") ? ":443" : ":80";
  return origin;
}

Result<std::string> ResolveUrl(const std::string& base, const std::string& reference) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  char* text = nullptr;
  if (url == nullptr || reference.size() > kMaxUrlBytes ||
      curl_url_set(url.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK ||
      curl_url_set(url.get(), CURLUPART_URL, reference.c_str(), 0) != CURLUE_OK ||
      curl_url_get(url.get(), CURLUPART_URL, &text, 0) != CURLUE_OK)
    return Fail(
        InvalidArgument(fmt::format("{} redirects to what is no address", WithoutQuery(base))));
  std::string resolved = text;
  curl_free(text);
  if (!resolved.starts_with("https://") && !resolved.starts_with("http://"))
    return Fail(InvalidArgument(
        fmt::format("{} redirects to something that is not http", WithoutQuery(base))));
  return resolved;
}

std::string EscapePath(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || c == '/';
    if (plain) {
      escaped += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    escaped += '%';
    escaped += kHex[byte >> 4];
    escaped += kHex[byte & 15];
  }
  return escaped;
}

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash)
    return std::nullopt;
  const auto first = ParseNumber(text.substr(0, dash));
  const auto last = ParseNumber(text.substr(dash + 1, slash - dash - 1));
  const auto total = ParseNumber(text.substr(slash + 1));
  if (!first || !last || !total || *last < *first || *last >= *total) return std::nullopt;
  return ContentRange{{*first, *last + 1}, *total};
}

std::optional<std::chrono::milliseconds> RetryAfter(const HttpHead& head) {
  constexpr int64_t kMostSeconds = 24 * 3600;
  const auto limited = [&](int64_t seconds) {
    return std::chrono::milliseconds(1000 * std::clamp<int64_t>(seconds, 0, kMostSeconds));
  };
  if (const std::string* text = head.Find("retry-after")) {
    if (const auto seconds = ParseNumber(*text))
      return limited(static_cast<int64_t>(std::min<uint64_t>(*seconds, kMostSeconds)));
    const std::string* now = head.Find("date");
    const time_t then = curl_getdate(text->c_str(), nullptr);
    const time_t since = now != nullptr ? curl_getdate(now->c_str(), nullptr) : -1;
    if (then >= 0 && since >= 0) return limited(static_cast<int64_t>(then - since));
  }
  // The hub: RateLimit: "resolvers";r=0;t=123
  if (const std::string* text = head.Find("ratelimit")) {
    const size_t at = text->find(";t=");
    if (at != std::string::npos)
      if (const auto seconds = ParseNumber(text->substr(at + 3)))
        return limited(static_cast<int64_t>(std::min<uint64_t>(*seconds, kMostSeconds)));
  }
  return std::nullopt;
}

Result<HttpHead> Get(Http& http, HttpRequest request, const HttpSink& sink) {
  const std::string origin = OriginOf(request.url);
  const std::string first(WithoutQuery(request.url));
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    TESSERA_ASSIGN_OR_RETURN(HttpHead head, http.OneHop(request, sink));
    const std::string* location = head.Find("location");
    if (!IsRedirect(head.status) || location == nullptr) return head;
    TESSERA_ASSIGN_OR_RETURN(std::string next, ResolveUrl(request.url, *location));
    if (request.url.starts_with("https:") && !next.starts_with("https:"))
      return Fail(FailedPrecondition(
          fmt::format("{} redirects from https to http, which is not followed", first)));
    if (OriginOf(next) != origin) {
      request.bearer.clear();
      request.aws = nullptr;
    }
    request.url = std::move(next);
  }
  return Fail(FailedPrecondition(
      fmt::format("{} redirects more than {} times: the hub or a proxy before it is set up wrongly",
                  first, kMaxRedirects)));
}

Result<HttpText> GetText(Http& http, HttpRequest request, uint64_t max_bytes) {
  HttpText text;
  const std::string url(WithoutQuery(request.url));
  const HttpSink sink{{}, [&](ByteSpan bytes) -> Status {
                        if (bytes.size() > max_bytes - text.body.size())
                          return ResourceExhausted(fmt::format(
                              "{} answers with more than the limit of {} bytes", url, max_bytes));
                        text.body += AsText(bytes);
                        return {};
                      }};
  TESSERA_ASSIGN_OR_RETURN(text.head, Get(http, std::move(request), sink));
  return text;
}

}  // namespace tessera::hub
