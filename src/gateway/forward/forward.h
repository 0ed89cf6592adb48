// SPDX-License-Identifier: Apache-2.0
//
// Forward: one call to whichever worker of an endpoint can take it. It waits for a worker if there
// is none, tries another one while nothing of an answer has come, and gives what comes to a sink.
// A generation has no side effects, so that trying again is always safe before the first byte.
// Thread-safe; a sink's calls come one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "gateway/route/route.h"
#include "net/upstream.h"

namespace tessera::gateway {

class ForwardSink {
 public:
  virtual ~ForwardSink() = default;
  /// The answer's status and headers; its body follows.
  virtual void OnHead(net::Response head) = 0;
  virtual void OnBody(std::string_view bytes) = 0;
  virtual bool HasRoom() { return true; }
  /// Once, last. Without a head before it: no worker answered; kDeadlineExceeded (none was ready in
  /// time), kResourceExhausted (too many wait), kNotFound (deleted), kUnavailable (several failed).
  /// After a head: how the body ended.
  virtual void OnEnd(const Status& status) = 0;
};

/// Workers that one call may try.
inline constexpr int kAttemptsMax = 3;

struct ForwardRequest {
  net::ClientRequest request;  // Without credentials: the worker's are added.
  std::vector<uint64_t> prefix{};
  TimePoint deadline = TimePoint::max();  // For having a worker.
};

/// Ends the call: it stops waiting, or the worker is told. The sink hears kCancelled unless the
/// call ended otherwise first. Any thread, any number of times.
using CancelForward = std::function<void()>;

CancelForward StartForward(std::shared_ptr<net::UpstreamClient> client,
                           std::shared_ptr<Route> route, ForwardRequest request,
                           std::shared_ptr<ForwardSink> sink);

}  // namespace tessera::gateway
