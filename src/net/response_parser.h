// SPDX-License-Identifier: Apache-2.0
//
// ResponseParser: bytes of an answer in any split -> head and body pieces, for the client. Over
// Boost.Beast. Interim (1xx) answers are skipped. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "net/http.h"

namespace tessera::net {

class ResponseParser {
 public:
  /// `is_head`: the answer to HEAD, which has no body whatever its headers say.
  ResponseParser(bool is_head, uint32_t header_bytes_max, uint64_t body_bytes_max);
  ~ResponseParser();

  struct Piece {
    size_t used = 0;        // Of the input's front; 0 with an empty body: more input is needed.
    std::string body;       // Decoded.
    bool has_head = false;  // The head became complete with this call; see head().
  };
  /// Offers what was received and not yet used. kDataLoss: malformed. kResourceExhausted: limits.
  Result<Piece> Feed(std::string_view input);
  /// The peer sends no more: completes a body that ends with the connection. kDataLoss: truncated.
  Status FeedEnd();

  bool is_done() const;
  bool has_head() const { return has_head_; }
  /// Status and headers. Requires has_head().
  const Response& head() const { return head_; }
  /// True if the connection may serve another request. Requires is_done().
  bool keeps_alive() const;

 private:
  struct Impl;
  void Restart();

  const bool is_head_;
  const uint32_t header_bytes_max_;
  const uint64_t body_bytes_max_;
  bool has_head_ = false;
  Response head_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::net
