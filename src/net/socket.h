// SPDX-License-Identifier: Apache-2.0
//
// ClientSocket: a TCP connection with time-outs over poll(2), for the blocking client. One thread
// at a time; `cancel_fd`, when readable, ends every wait with kCancelled. Never raises SIGPIPE.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace tessera::net {

class ClientSocket {
 public:
  /// `cancel_fd` is borrowed; -1 for none.
  explicit ClientSocket(int cancel_fd) : cancel_fd_(cancel_fd) {}
  ~ClientSocket() { Close(); }
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  /// Tries every address of `host` in turn. kNotFound (no such host), kUnavailable,
  /// kDeadlineExceeded, kCancelled.
  Status Connect(const std::string& host, uint16_t port, Duration timeout);
  /// Sends all. `timeout` counts from the last byte taken. kUnavailable when the peer is gone.
  Status SendAll(std::string_view bytes, Duration timeout);
  /// Receives some bytes; 0 at the end of input.
  Result<size_t> Receive(std::span<char> into, Duration timeout);
  void Close();
  bool is_open() const { return fd_ >= 0; }

 private:
  /// Waits for `events` (poll.h).
  Status Wait(short events, Duration timeout) const;

  const int cancel_fd_;
  int fd_ = -1;
};

}  // namespace tessera::net
