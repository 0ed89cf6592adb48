// SPDX-License-Identifier: Apache-2.0
//
// UpstreamClient: HTTP/1.1 calls to many servers at a time without a thread for each: what a proxy
// needs. A few loops own all connections and keep them open between calls. Plain TCP to numeric
// addresses; no redirects, no proxies.
//
//   auto call = client.Send({"127.0.0.1", 8000}, request, listener);
//   ...on a loop thread:  listener->OnHead(...), OnBody(...)*, OnEnd(...)
//
// Send and UpstreamCall may be used from any thread. A listener's calls come one after another on
// one loop thread, so they must not block; the client keeps it alive until OnEnd has returned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/client_request.h"
#include "net/http.h"

namespace tessera::net {

struct UpstreamAddress {
  std::string host = "127.0.0.1";  // IPv4 or IPv6, in digits.
  uint16_t port = 80;

  auto operator<=>(const UpstreamAddress&) const = default;
};

/// How a call ended.
struct UpstreamEnd {
  /// kUnavailable (refused, reset), kDeadlineExceeded, kDataLoss (truncated or malformed answer),
  /// kResourceExhausted (limits), kCancelled, kInvalidArgument (the request or address).
  Status status{};
  /// Whether any byte of the request may have reached the server. If not, trying another is safe.
  bool was_sent = false;
};

class UpstreamListener {
 public:
  virtual ~UpstreamListener() = default;
  /// Status and headers; the body is empty.
  virtual void OnHead(Response head) = 0;
  /// Decoded bytes of the body.
  virtual void OnBody(std::string_view bytes) = 0;
  /// Asked before more is read: false lets the server wait (it is asked again soon), so that a slow
  /// client slows its server down instead of filling memory.
  virtual bool HasRoom() { return true; }
  /// Exactly once, last.
  virtual void OnEnd(const UpstreamEnd& end) = 0;
};

/// One call; a cheap handle that may outlive client and call.
class UpstreamCall {
 public:
  UpstreamCall() = default;
  explicit UpstreamCall(std::function<void()> cancel) : cancel_(std::move(cancel)) {}
  /// OnEnd follows with kCancelled, unless the call ends otherwise first; the connection is closed,
  /// which tells the server. Any number of times.
  void Cancel() const {
    if (cancel_) cancel_();
  }

 private:
  std::function<void()> cancel_;
};

struct UpstreamOptions {
  int loop_threads = 1;
  Duration connect_timeout = std::chrono::seconds(5);
  Duration idle_timeout = std::chrono::seconds(600);  // No byte of a running call for so long.
  Duration keep_alive = std::chrono::seconds(30);     // Unused connections; less than the server's.
  size_t kept_per_address = 256;
  uint32_t header_bytes_max = 64u << 10;
  uint64_t body_bytes_max = 1ull << 40;
};

class UpstreamClient {
 public:
  static Result<std::unique_ptr<UpstreamClient>> Start(UpstreamOptions options);
  /// Open calls end with kCancelled before it returns.
  ~UpstreamClient();
  UpstreamClient(const UpstreamClient&) = delete;
  UpstreamClient& operator=(const UpstreamClient&) = delete;

  /// A call on a kept connection that the server closed meanwhile, before any byte of the answer,
  /// is sent again on a fresh one, as RFC 9110 9.2.2 allows where it is known to be safe: a server
  /// that closes an idle connection has read nothing from it.
  UpstreamCall Send(UpstreamAddress address, ClientRequest request,
                    std::shared_ptr<UpstreamListener> listener);

 private:
  class Impl;
  explicit UpstreamClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::net
