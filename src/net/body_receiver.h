// SPDX-License-Identifier: Apache-2.0
//
// BodyReceiver: takes a request's body as it arrives, for bodies that need not be in memory whole:
// uploads. The hook decides by the head; requests that it gives no receiver go to the server's
// handler with their body, as ever.
//
//   head ─▶ hook ─▶ OnBytes* on the connection's loop ─▶ OnComplete on a worker thread
//                                └── destroyed instead of OnComplete: refused, or the peer is gone
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "net/errors.h"
#include "net/http.h"
#include "net/response_writer.h"

namespace tessera::net {

class BodyReceiver {
 public:
  virtual ~BodyReceiver() = default;
  /// Decoded bytes, in order. On a loop thread: it may write to a file but must wait for nothing
  /// (no lock that is held long, no fsync). An error is the answer, and the connection ends.
  virtual std::optional<HttpError> OnBytes(std::string_view bytes) = 0;
  /// All bytes have come. On a worker thread, in place of the handler; the request has no body.
  virtual void OnComplete(Request request, ResponseWriter writer) = 0;
};

/// What becomes of a request's body. Without a receiver: the server's handler and limits.
struct BodyPlan {
  std::shared_ptr<BodyReceiver> receiver{};
  uint64_t bytes_max = 0;  // Of a receiver's body, after chunk decoding. 413.
};

/// Asked once for a request that announces a body, before any of it is read; on a loop thread, so
/// it must not block. Its error is the answer to the request. `head` has no body and no peer.
using BodyReceiverHook = std::function<std::expected<BodyPlan, HttpError>(const Request& head)>;

}  // namespace tessera::net
