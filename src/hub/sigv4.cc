// SPDX-License-Identifier: Apache-2.0
#include "hub/sigv4.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/bytes.h"
#include "base/hash.h"
#include "hub/http.h"

namespace tessera::hub {
namespace {

using Pair = std::pair<std::string, std::string>;
using Digest = Sha256::Digest;

/// HMAC (RFC 2104) over SHA-256, whose blocks have 64 bytes.
Digest Hmac(ByteSpan key, std::string_view text) {
  std::array<std::byte, 64> block{};
  Digest short_key;
  if (key.size() > block.size()) {
    Sha256 hash;
    hash.Update(key);
    short_key = hash.Finish();
    key = short_key;
  }
  std::copy(key.begin(), key.end(), block.begin());
  const auto pad = [&](unsigned char with) {
    std::array<std::byte, 64> padded = block;
    for (std::byte& byte : padded) byte ^= std::byte{with};
    return padded;
  };
  Sha256 inner;
  inner.Update(pad(0x36));
  inner.Update(AsBytes(text));
  Sha256 outer;
  outer.Update(pad(0x5c));
  outer.Update(inner.Finish());
  return outer.Finish();
}

/// "20150830T123600Z"
std::string Stamp(int64_t unix_seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(unix_seconds)};
  const auto midnight = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day day{midnight};
  const std::chrono::hh_mm_ss clock{time - midnight};
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

struct UrlParts {
  std::string host;  // With a port that is not the scheme's own.
  std::string_view path;
  std::string_view query;
};
UrlParts Split(std::string_view url) {
  UrlParts parts;
  const size_t scheme = url.find("://");
  const std::string_view own_port = url.starts_with("https:") ? ":443" : ":80";
  url.remove_prefix(scheme == std::string_view::npos ? 0 : scheme + 3);
  url = url.substr(0, url.find('#'));
  const size_t end = url.find_first_of("/?");
  std::string_view host = url.substr(0, end);
  if (host.ends_with(own_port)) host.remove_suffix(own_port.size());
  parts.host = host;
  if (end == std::string_view::npos) return parts;
  url.remove_prefix(end);
  const size_t mark = url.find('?');
  parts.path = url.substr(0, mark);
  if (mark != std::string_view::npos) parts.query = url.substr(mark + 1);
  return parts;
}

/// Ascending by name, then by value: not the same as by text, since '=' comes after '-' and '.'.
std::string CanonicalQuery(std::string_view query) {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view field = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    const size_t equals = field.find('=');
    fields.emplace_back(field.substr(0, equals),
                        equals == std::string_view::npos ? "" : field.substr(equals + 1));
  }
  std::sort(fields.begin(), fields.end());
  std::string text;
  for (const auto& [name, value] : fields)
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

/// Without spaces at its ends, and one where there are several.
std::string CanonicalValue(std::string_view value) {
  std::string text;
  for (const char c : value)
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return lower;
}

}  // namespace

Pair EmptyPayloadHeader() {
  return {"X-Amz-Content-Sha256", Sha256Hex({})};
}

std::vector<Pair> SignGet(const AwsSettings& aws, SigV4Request request) {
  const UrlParts url = Split(request.url);
  const std::string stamp = Stamp(request.unix_seconds);
  const std::string day = stamp.substr(0, 8);
  std::vector<Pair> headers = std::move(request.headers);
  headers.emplace_back("Host", url.host);
  headers.emplace_back("X-Amz-Date", stamp);
  if (!aws.session_token.empty()) headers.emplace_back("X-Amz-Security-Token", aws.session_token);

  std::vector<Pair> canonical;
  for (const auto& [name, value] : headers)
    canonical.emplace_back(Lower(name), CanonicalValue(value));
  std::sort(canonical.begin(), canonical.end());
  std::string lines;
  std::string names;
  for (const auto& [name, value] : canonical) {
    lines += fmt::format("{}:{}\n", name, value);
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string text =
      fmt::format("GET\n{}\n{}\n{}\n{}\n{}", url.path.empty() ? std::string_view("/") : url.path,
                  CanonicalQuery(url.query), lines, names, Sha256Hex({}));
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, aws.region, request.service);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", stamp, scope, Sha256Hex(AsBytes(text)));
  Digest key = Hmac(AsBytes("AWS4" + aws.secret_key), day);
  for (const std::string_view part :
       {std::string_view(aws.region), request.service, std::string_view("aws4_request")})
    key = Hmac(key, part);
  headers.emplace_back(
      "Authorization",
      fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                  aws.access_key, scope, names, HexOf(Hmac(key, to_sign))));
  return headers;
}

}  // namespace tessera::hub
