// SPDX-License-Identifier: Apache-2.0
#include "net/request_head.h"

#include <fmt/format.h>

#include <charconv>

#include "net/ascii.h"

namespace tessera::net {
namespace {

using MaybeError = std::optional<HttpError>;

constexpr size_t kMethodBytesMax = 32;
// Method, version, two spaces and CRLF: what the request line holds beside the target.
constexpr size_t kRequestLineOverhead = kMethodBytesMax + 12;

HttpError BadRequest(std::string code, std::string message) {
  return {400, std::move(code), std::move(message)};
}

MaybeError ReadVersion(std::string_view version, Request* request) {
  const bool is_http = version.size() == 8 && version.starts_with("HTTP/") && IsDigit(version[5]) &&
                       version[6] == '.' && IsDigit(version[7]);
  if (!is_http) return BadRequest("invalid_request_line", "the request line has no HTTP version");
  if (version[5] != '1' || version[7] > '1')
    return HttpError{505, "unsupported_version", "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  request->version_minor = version[7] - '0';
  return std::nullopt;
}

bool IsHostChar(char c) {
  return IsDigit(c) || IsAlpha(c) ||
         (c != '\0' && std::string_view("-._~%!$&'()*+,;=:[]").contains(c));
}

/// "http://host/path?query" -> "/path?query" (RFC 9112 section 3.2.2); nullopt when the authority
/// is missing or malformed. Other forms stay as they are.
std::optional<std::string> OriginForm(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualsNoCase(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    if (end == 0 || !std::ranges::all_of(target.substr(0, end), IsHostChar)) return std::nullopt;
    const std::string_view rest = target.substr(end);
    return rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  }
  return std::string(target);
}

MaybeError ReadTarget(std::string_view target, const Limits& limits, Request* request) {
  if (target.size() > limits.target_bytes)
    return HttpError{
        414, "target_too_long",
        fmt::format("the request target is longer than {} bytes", limits.target_bytes)};
  request->target = target;
  const std::optional<std::string> origin = OriginForm(target);
  if (!origin) return BadRequest("invalid_target", "the target's authority is malformed");
  if (*origin == "*" && request->method != "OPTIONS")
    return BadRequest("invalid_target", "only OPTIONS takes the target \"*\"");
  const Status parsed = ParseTarget(*origin, limits.path_segments, limits.query_params, request);
  if (!parsed.ok()) return BadRequest("invalid_target", parsed.message());
  return std::nullopt;
}

MaybeError ReadRequestLine(std::string_view line, const Limits& limits, Request* request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == line.npos || first == last)
    return BadRequest("invalid_request_line",
                      "expected \"method target version\" with single spaces");
  const std::string_view method = line.substr(0, first);
  if (!IsToken(method) || method.size() > kMethodBytesMax)
    return BadRequest("invalid_method", "the method is not a token");
  request->method = method;
  if (MaybeError error = ReadVersion(line.substr(last + 1), request)) return error;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const bool is_visible =
      std::ranges::all_of(target, [](char c) { return IsFieldChar(c) && c != ' ' && c != '\t'; });
  if (target.empty() || !is_visible)
    return BadRequest("invalid_target", "the target is empty or holds a space");
  return ReadTarget(target, limits, request);
}

MaybeError ReadHeaderLine(std::string_view line, Request* request) {
  if (line.starts_with(' ') || line.starts_with('\t'))
    return BadRequest("invalid_header", "a header line is folded");
  const size_t colon = line.find(':');
  if (colon == line.npos) return BadRequest("invalid_header", "a header line has no colon");
  if (!IsToken(line.substr(0, colon)))
    return BadRequest("invalid_header",
                      "a header name is empty or holds a character that names may not have");
  request->headers.Add(line.substr(0, colon), Trim(line.substr(colon + 1)));
  return std::nullopt;
}

size_t CountOf(const Headers& headers, std::string_view name) {
  return static_cast<size_t>(std::ranges::count_if(
      headers, [&](const Headers::Field& field) { return EqualsNoCase(field.first, name); }));
}

MaybeError CheckHost(const Request& request) {
  const size_t hosts = CountOf(request.headers, "Host");
  if (hosts > 1 || (hosts == 0 && request.version_minor == 1))
    return BadRequest("invalid_host", "expected exactly one Host header");
  if (hosts == 1 && !std::ranges::all_of(*request.headers.Find("Host"), IsHostChar))
    return BadRequest("invalid_host", "the Host header is no host");
  return std::nullopt;
}

MaybeError ReadContentLength(std::string_view text, uint64_t body_bytes_max,
                             RequestFraming* framing) {
  if (text.empty() || !std::ranges::all_of(text, IsDigit))
    return BadRequest("invalid_content_length", "Content-Length is not one decimal number");
  uint64_t length = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
  if (parsed.ec != std::errc() || length > body_bytes_max)
    return HttpError{413, "body_too_large",
                     fmt::format("the body is larger than {} bytes", body_bytes_max)};
  framing->content_length = length;
  return std::nullopt;
}

MaybeError ReadFraming(const Request& request, const Limits& limits, RequestFraming* framing) {
  const size_t lengths = CountOf(request.headers, "Content-Length");
  const size_t encodings = CountOf(request.headers, "Transfer-Encoding");
  if (lengths > 0 && encodings > 0)
    return BadRequest("ambiguous_framing", "both Content-Length and Transfer-Encoding are given");
  if (lengths > 1 || encodings > 1)
    return BadRequest("ambiguous_framing", "a framing header is given twice");
  if (encodings == 1) {
    if (request.version_minor == 0)
      return BadRequest("ambiguous_framing", "HTTP/1.0 has no Transfer-Encoding");
    if (!EqualsNoCase(*request.headers.Find("Transfer-Encoding"), "chunked"))
      return HttpError{501, "unsupported_transfer_encoding",
                       "only the transfer encoding \"chunked\" is known"};
    framing->is_chunked = true;
  }
  if (lengths == 1)
    return ReadContentLength(*request.headers.Find("Content-Length"), limits.body_bytes, framing);
  return std::nullopt;
}

MaybeError ReadExpectation(const Request& request, RequestFraming* framing) {
  const auto expect = request.headers.Find("Expect");
  if (!expect) return std::nullopt;
  if (!EqualsNoCase(*expect, "100-continue"))
    return HttpError{417, "unknown_expectation", "only \"Expect: 100-continue\" is known"};
  framing->wants_continue = request.version_minor == 1;
  return std::nullopt;
}

}  // namespace

std::expected<size_t, HttpError> HeadScanner::Scan(std::string_view input) {
  while (position_ < input.size()) {
    if (position_ >= limits_.header_bytes)
      return std::unexpected(
          HttpError{431, "header_too_large",
                    fmt::format("the request head is larger than {} bytes", limits_.header_bytes)});
    const char byte = input[position_];
    if (std::optional<HttpError> error = CheckByte(byte)) return std::unexpected(*error);
    ++position_;
    if (byte != '\n') continue;
    if (position_ - line_start_ == 2) return position_;  // The blank line.
    if (++lines_ > limits_.header_count + 1)
      return std::unexpected(HttpError{
          431, "too_many_headers",
          fmt::format("the request has more than {} header lines", limits_.header_count)});
    line_start_ = position_;
  }
  return 0;
}

std::optional<HttpError> HeadScanner::CheckByte(char byte) {
  const bool follows_cr = after_cr_;
  after_cr_ = byte == '\r';
  if (position_ == 0 && !IsTokenChar(byte))
    return BadRequest("invalid_request_line", "this is not an HTTP request");
  if (follows_cr != (byte == '\n'))
    return BadRequest("invalid_line_end", "a line does not end in CR LF");
  if (!IsFieldChar(byte) && byte != '\r' && byte != '\n')
    return BadRequest("invalid_character", "the request head holds a control character");
  if (lines_ == 0 && position_ >= limits_.target_bytes + kRequestLineOverhead)
    return HttpError{
        414, "target_too_long",
        fmt::format("the request target is longer than {} bytes", limits_.target_bytes)};
  return std::nullopt;
}

std::optional<HttpError> ReadRequestHead(std::string_view head, const Limits& limits,
                                         Request* request, RequestFraming* framing) {
  size_t start = 0;
  for (bool is_first = true;; is_first = false) {
    const size_t end = head.find("\r\n", start);
    if (end == head.npos) return BadRequest("invalid_line_end", "the head has no blank line");
    const std::string_view line = head.substr(start, end - start);
    start = end + 2;
    if (line.empty()) break;
    if (MaybeError error =
            is_first ? ReadRequestLine(line, limits, request) : ReadHeaderLine(line, request))
      return error;
  }
  if (MaybeError error = CheckHost(*request)) return error;
  if (MaybeError error = ReadFraming(*request, limits, framing)) return error;
  if (MaybeError error = ReadExpectation(*request, framing)) return error;
  framing->keep_alive =
      request->version_minor == 1 && !request->headers.HasToken("Connection", "close");
  return std::nullopt;
}

}  // namespace tessera::net
