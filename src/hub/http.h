// SPDX-License-Identifier: Apache-2.0
//
// Http: what clients of this program need of HTTP, as an interface: one request over one hop.
// curl_http.h is the real one; tests put a scripted one in its place. Get() adds redirects, whose
// rules are ours:
// credentials go to the origin (scheme, host, port) of the first address and nowhere else, https
// never becomes http, and there are at most kMaxRedirects. An object belongs to one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "hub/limits.h"
#include "hub/settings.h"

namespace tessera::hub {

/// Half open: [begin, end).
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::string bearer;  // Token; empty: none.
  std::optional<ByteRange> range;
  std::string if_range;                  // Validator; only with `range`.
  const AwsSettings* aws = nullptr;      // Signs a GET with SigV4 when it has keys.
  std::optional<std::string> json_body;  // Of other methods.
  bool is_direct = false;                // Whatever the proxies' variables say.
  size_t error_bytes_max = kMaxErrorBodyBytes;
  /// The whole answer must be there by then; 0: as long as bytes arrive.
  std::chrono::milliseconds time_limit{0};
};

struct HttpHead {
  int status = 0;
  std::string url;                                           // That answered: the last hop's.
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.
  std::string error_text;  // The beginning of the body unless the status is 2xx.

  /// The last header of that name; null when absent. `name` in lower case.
  const std::string* Find(std::string_view name) const;
  bool ok() const { return status / 100 == 2; }
};

/// Both are called from Get(), on its thread; an error ends the transfer and is what Get() returns.
struct HttpSink {
  std::function<Status(const HttpHead&)> on_head;  // Of a 2xx, before its body. May be empty.
  std::function<Status(ByteSpan)> on_body;         // Of a 2xx.
};

class Http {
 public:
  virtual ~Http() = default;

  /// Any complete answer is a success, whatever its status. kUnavailable: no connection, a broken
  /// or stalled transfer (retrying may help). kFailedPrecondition: a certificate that is not
  /// trusted. kInvalidArgument: no address. No redirect is followed.
  virtual Result<HttpHead> OneHop(const HttpRequest& request, const HttpSink& sink) = 0;
};

using HttpFactory = std::function<Result<std::unique_ptr<Http>>()>;

/// OneHop() along redirects. kFailedPrecondition for too many of them or one to http.
Result<HttpHead> Get(Http& http, HttpRequest request, const HttpSink& sink);

/// The whole body of a 2xx as text, at most `max_bytes` (else kResourceExhausted); empty otherwise.
struct HttpText {
  HttpHead head;
  std::string body;
};
Result<HttpText> GetText(Http& http, HttpRequest request, uint64_t max_bytes);

/// "https://host:443" in lower case, the port always there; empty when `url` has no host.
std::string OriginOf(std::string_view url);
/// `reference` (of a Location header) as seen from `base`. kInvalidArgument when that is no
/// http(s) address.
Result<std::string> ResolveUrl(const std::string& base, const std::string& reference);
/// "a b/c" -> "a%20b/c": all but unreserved characters and slashes.
std::string EscapePath(std::string_view path);
/// Without query: what may stand in messages, since signatures are in queries.
std::string_view WithoutQuery(std::string_view url);

/// "bytes 10-19/100" -> {10, 20}, 100; nothing for anything else.
struct ContentRange {
  ByteRange range;
  uint64_t total = 0;
};
std::optional<ContentRange> ParseContentRange(std::string_view text);

/// Of a 429 or 503: how long the server asks to wait, from Retry-After (seconds, or a date compared
/// with the answer's own Date, so that no clock of ours matters) or the hub's RateLimit header.
std::optional<std::chrono::milliseconds> RetryAfter(const HttpHead& head);

}  // namespace tessera::hub
