// SPDX-License-Identifier: Apache-2.0
//
// The strict reading of a request head (RFC 9112 sections 2-6). The rules, each with a test:
//   - lines end in CRLF; a bare CR or LF, a NUL or another control character is refused;
//   - "method SP target SP HTTP/1.x" with single spaces; the method is a token, the target visible;
//   - other versions than 1.0 and 1.1 get 505;
//   - a header line is "token:value"; no space before the colon, no folded lines;
//   - exactly one Host in HTTP/1.1, at most one in 1.0, and a host it must be;
//   - at most one Content-Length, decimal digits only, 413 beyond the body limit;
//   - Transfer-Encoding is "chunked" alone (501 for others), not in 1.0, never with Content-Length;
//   - Expect is "100-continue" or 417.
// Pure functions over bytes; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "net/errors.h"
#include "net/http.h"
#include "net/limits.h"

namespace tessera::net {

/// What the head says about the rest of the message.
struct RequestFraming {
  std::optional<uint64_t> content_length;
  bool is_chunked = false;
  bool wants_continue = false;
  bool keep_alive = true;
};

/// Finds the end of the head in bytes that arrive piece by piece, refusing early what no later byte
/// can repair, so that garbage is not waited for.
class HeadScanner {
 public:
  explicit HeadScanner(const Limits& limits) : limits_(limits) {}

  /// `input` is everything since the head's first byte; bytes seen before are not looked at again.
  /// Returns the head's size, 0 when more is needed, or an error.
  std::expected<size_t, HttpError> Scan(std::string_view input);
  void Reset() { *this = HeadScanner(limits_); }
  size_t scanned() const { return position_; }

 private:
  std::optional<HttpError> CheckByte(char byte);

  Limits limits_;
  size_t position_ = 0;
  size_t line_start_ = 0;
  uint32_t lines_ = 0;  // Complete ones, request line included.
  bool after_cr_ = false;
};

/// Reads a complete head (with its blank line). Fills everything of `request` but body and peer.
std::optional<HttpError> ReadRequestHead(std::string_view head, const Limits& limits,
                                         Request* request, RequestFraming* framing);

}  // namespace tessera::net
