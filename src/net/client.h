// SPDX-License-Identifier: Apache-2.0
//
// HttpClient: a small blocking HTTP/1.1 client for `tessera` talking to itself and for tests. Plain
// TCP only, no redirects, no proxies (hub/ has its own). Keeps one connection open between calls;
// a call on a kept connection that the peer closed meanwhile, before any byte of the answer, is
// retried once on a fresh one. One thread at a time; Cancel is the exception.
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

struct ClientOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 80;
  Duration connect_timeout = std::chrono::seconds(10);
  Duration idle_timeout = std::chrono::seconds(120);  // No byte sent or received for so long.
  uint32_t header_bytes_max = 64u << 10;
  uint64_t body_bytes_max = 256ull << 20;
};

class HttpClient {
 public:
  explicit HttpClient(ClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// The whole answer, any status code. kUnavailable (cannot connect, reset), kDeadlineExceeded,
  /// kDataLoss (truncated or malformed answer), kResourceExhausted (limits), kCancelled.
  Result<Response> Call(const ClientRequest& request);

  /// The same, but body bytes go to `on_body` as they arrive and the Response's body is empty.
  /// `on_head` (may be null) sees status and headers first. Returning false from either ends the
  /// call with kCancelled and closes the connection.
  using OnHead = std::function<bool(const Response& head)>;
  using OnBody = std::function<bool(std::string_view bytes)>;
  Result<Response> Stream(const ClientRequest& request, const OnHead& on_head,
                          const OnBody& on_body);

  /// Makes a running call on another thread fail with kCancelled soon; later calls fail too. The
  /// client must outlive this call.
  void Cancel();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::net
