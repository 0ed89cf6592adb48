// SPDX-License-Identifier: Apache-2.0
//
// Every bound of the HTTP server in one place. A value of n admits n and refuses n + 1; the status
// in the comment is what the peer gets. All are per connection unless "server" is said.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace tessera::net {

struct Limits {
  // Sizes of one request.
  uint32_t header_bytes = 64u << 10;  // Request line and header lines with line ends. 431.
  uint32_t header_count = 128;        // Header lines. 431.
  uint32_t target_bytes = 16u << 10;  // Request target as sent. 414.
  uint64_t body_bytes = 64ull << 20;  // After chunk decoding. 413, before reading when announced.
  uint32_t query_params = 256;        // 400.
  uint32_t path_segments = 64;        // 400.
  /// Framing of a chunked body that may wait unparsed: one chunk line with extensions, or the
  /// trailers. 400.
  uint32_t chunk_line_bytes = 8u << 10;

  // Sizes of one response.
  /// Bytes of a stream that were written by the handler and not yet taken by the peer. A Write
  /// that would exceed it cuts the connection (one Write into an empty queue may be larger).
  uint64_t unsent_bytes = 4ull << 20;

  // Server.
  uint32_t connections = 1024;             // 503 and close.
  uint32_t queued_requests = 256;          // Waiting for a worker thread. 503.
  uint64_t body_bytes_total = 1ull << 30;  // Bodies being read or handled, all connections. 503.

  // Times. None is extended by dripping bytes.
  Duration header_timeout = std::chrono::seconds(20);  // Accept or first byte to end of head. 408.
  /// A body may take this long plus received bytes / body_bytes_per_s. 408.
  Duration body_timeout = std::chrono::seconds(30);
  uint32_t body_bytes_per_s = 16u << 10;
  Duration idle_timeout = std::chrono::seconds(75);         // Between requests. Closed silently.
  Duration write_stall_timeout = std::chrono::seconds(30);  // Peer takes no byte. Cut.
  /// After an early refusal, what the peer still sends is read and dropped for so long, so that
  /// it sees the answer instead of a reset.
  Duration linger_timeout = std::chrono::seconds(3);
};

}  // namespace tessera::net
