// SPDX-License-Identifier: Apache-2.0
//
// ResponseWriter: the answering end of one request, and Handler, the function that gets it. It is
// a handle: cheap to copy, movable to any thread (the engine's, a consumer's), valid as long as a
// copy lives, even after the connection or the server is gone. All calls are thread-safe and none
// blocks, except WaitForRoom.
//
// Life: either one Send, or StartStream, any number of Write, Finish.
//   - When the last copy dies before the answer is complete, the peer gets a 500 (nothing sent
//     yet) or a cut connection (mid-stream: a truncated stream must not look complete).
//   - HTTP/1.1 streams are chunked, HTTP/1.0 streams end with the connection. The body of an
//     answer to HEAD is dropped, its Content-Length kept.
//
//   void Handle(Request request, ResponseWriter writer) {
//     writer.OnDisconnect([id] { engine.Cancel(id); });
//     if (!writer.StartStream(200, {{"content-type", "text/event-stream"}}).ok()) return;
//     ...later, elsewhere:  writer.Write(EncodeSse({.data = "..."}));  writer.Finish();
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/http.h"

namespace tessera::net {

class Exchange;  // exchange.h: state shared with the connection.

class ResponseWriter {
 public:
  explicit ResponseWriter(std::shared_ptr<Exchange> exchange);

  // The four calls below return kCancelled once the peer is gone (the bytes are dropped; nothing
  // needs to be done), kFailedPrecondition when called out of order, kInvalidArgument when a header
  // would break the message (then nothing was sent and another answer may be given).

  Status Send(Response response) const;
  Status StartStream(int status, Headers headers) const;
  /// Queues bytes. kResourceExhausted when the peer reads too slowly (limits.h `unsent_bytes`):
  /// the connection is cut and counts as gone from then on.
  Status Write(std::string_view bytes) const;
  Status Finish() const;

  /// Calls `callback` once if the peer goes away (end of input, reset, stall, cut, server stop)
  /// before the answer is complete; at once on this thread if that has happened already; else on
  /// a loop thread, so it must not block. Never after the complete answer was handed over. A
  /// second callback replaces the first. It must not hold a copy of this writer (a cycle).
  void OnDisconnect(std::function<void()> callback) const;
  bool disconnected() const;

  /// Bytes queued and not yet taken by the peer.
  uint64_t unsent_bytes() const;
  /// Blocks until at most half of the unsent limit is queued: for producers that are faster than a
  /// peer may read (file downloads). kCancelled, kDeadlineExceeded. Never call it on a loop thread.
  Status WaitForRoom(Duration timeout) const;

 private:
  struct Guard;  // Holds the exchange and tells it when the last copy dies.
  std::shared_ptr<Guard> guard_;
};

/// Runs on a worker thread of the server; may block for a while, but holds that worker meanwhile.
/// May return before the answer is given. An exception counts as an answer never given.
using Handler = std::function<void(Request request, ResponseWriter writer)>;

}  // namespace tessera::net
