// SPDX-License-Identifier: Apache-2.0
//
// Request and Response: HTTP messages as plain values, owned by whoever holds them. No I/O, no
// thread rule beyond that of any value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tessera::net {

/// "Not Found" for 404; "Unknown" for codes we have no phrase for.
std::string_view ReasonPhrase(int status);

/// Header fields in order of arrival. Names compare without case. A handful of fields: linear.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  /// Appends; an equal name stays beside it (Set-Cookie).
  void Add(std::string_view name, std::string_view value);
  /// Replaces every field of that name.
  void Set(std::string_view name, std::string_view value);
  void Remove(std::string_view name);
  /// The first value of that name; the view lives until the next change.
  std::optional<std::string_view> Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name).has_value(); }
  /// True if a comma-separated list header holds `token` (compared without case) in any field.
  bool HasToken(std::string_view name, std::string_view token) const;

  /// kInvalidArgument when a name is no token or a value holds a control character: the reason
  /// why reflected input cannot split a response.
  Status Check() const;

  bool empty() const { return fields_.empty(); }
  size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

/// What a handler gets. Already checked: the path has no NUL, control character, broken escape,
/// invalid UTF-8 or step out of the root, in no segment either after decoding.
struct Request {
  std::string method;  // As sent; methods are case-sensitive.
  std::string target;  // As sent.
  /// Percent-decoded segments joined by '/', with "." and ".." resolved. "/" for the root, "*" for
  /// `OPTIONS *`.
  std::string path;
  /// The same before joining: a "%2F" stays inside its segment. "/a/b" -> {"a","b"}; "/a/" ->
  /// {"a",""}.
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;   // Decoded, '+' is a space.
  std::vector<std::pair<std::string, std::string>> params;  // Set by the router, pattern order.
  Headers headers{};
  std::string body{};
  int version_minor = 1;  // HTTP/1.x
  std::string peer;       // Address and port: "127.0.0.1:51234", "[::1]:51234".

  /// First query parameter of that name.
  std::optional<std::string_view> Query(std::string_view name) const;
  /// Value of `{name}` in the route's pattern; empty if the pattern has none.
  std::string_view Param(std::string_view name) const;
};

/// A whole answer. The server adds Content-Length, Date and Connection and must not be given them;
/// Content-Type is the caller's.
struct Response {
  int status = 200;
  Headers headers{};
  std::string body{};

  static Response Json(int status, std::string body);
  static Response Text(int status, std::string body);  // text/plain; charset=utf-8
};

/// Splits and decodes an origin-form target ("/a%20b?x=1") into path, segments and query.
/// kInvalidArgument says what is wrong. Limits: see limits.h.
Status ParseTarget(std::string_view target, uint32_t segments_max, uint32_t query_params_max,
                   Request* request);

/// "%41" -> "A". kInvalidArgument for a broken escape. `plus_is_space` for query strings.
Result<std::string> PercentDecode(std::string_view text, bool plus_is_space);
/// Escapes all but unreserved characters: for clients that put a name in a path or query.
std::string PercentEncode(std::string_view text);

}  // namespace tessera::net
