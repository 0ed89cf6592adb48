// SPDX-License-Identifier: Apache-2.0
//
// Server: HTTP/1.1 over TCP or TLS. A few loops do all I/O; handlers run on a small pool of worker
// threads and answer through a ResponseWriter from any thread, now or later. One request at a time
// per connection; pipelined ones wait in order. While a request is being handled the connection
// keeps reading, so that a peer that goes away is noticed at once.
//
// Ownership: the server owns its threads and connections; a ResponseWriter may outlive it. The
// handler and hooks must stay callable until Drain or the destructor returns. Start, Drain and the
// destructor belong to one owner thread, never to a handler; the rest is thread-safe.
//
// Strictness: a message whose framing could be read in two ways is refused with 400 and the
// connection closed; request_parser.h lists the rules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/body_receiver.h"
#include "net/errors.h"
#include "net/limits.h"
#include "net/response_writer.h"
#include "net/tls_files.h"

namespace tessera::net {

struct ServerOptions {
  std::string host = "127.0.0.1";  // Name or address, IPv4 or IPv6 (::1 or [::1]).
  uint16_t port = 0;               // 0: any free one, see Server::port().
  /// A bound and listening TCP socket that was inherited, instead of host and port. Taken over.
  std::optional<int> listen_fd{};
  bool loopback_only = false;  // Refuse a host that other machines can reach.
  int loop_threads = 2;
  int worker_threads = 4;
  Limits limits{};
  std::optional<TlsFiles> tls{};
  ErrorHook error_hook = DefaultErrorResponse;
  BodyReceiverHook body_receiver_hook{};  // Empty: every body is held whole for the handler.
};

/// Counters since start, for metrics and tests.
struct ServerStats {
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;  // Over the limit.
  uint64_t connections_open = 0;     // Now.
  uint64_t requests = 0;             // Complete heads, also refused ones.
  uint64_t requests_open = 0;        // Given to the handler and not yet answered.
  uint64_t disconnects = 0;          // Peers gone before their answer was complete.
};

class Server {
 public:
  /// Binds, listens and serves. kInvalidArgument (host, TLS files), kAlreadyExists (port taken),
  /// kPermissionDenied (port reserved), kFailedPrecondition (not loopback).
  static Result<std::unique_ptr<Server>> Start(ServerOptions options, Handler handler);
  /// Stops at once: open requests see a disconnect.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  /// "127.0.0.1:8000", "[::1]:8000".
  std::string address() const;
  ServerStats stats() const;

  bool has_tls() const;
  /// Reads the TLS files again: connections accepted from now on use them, those that are open keep
  /// what they have. kInvalidArgument names the file that does not fit; then nothing has changed.
  /// No effect without TLS.
  Status ReloadTls();

  /// Stops accepting, closes idle connections, lets requests that have begun finish (their answers
  /// carry `Connection: close`), then stops. kDeadlineExceeded when some did not finish in time and
  /// were cut. The server is stopped either way. Blocks; a second call returns at once.
  Status Drain(Duration timeout);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::net
