// SPDX-License-Identifier: Apache-2.0
//
// Transport: the byte stream of one accepted connection with its loop and timer, so that
// connection.h is pure logic: the same code runs over TCP, TLS and memory (tests, fuzzers).
//
// All calls belong to the connection's loop thread, except Post. Completions are delivered on that
// thread, never from inside the call that started the operation.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace tessera::net {

class Transport {
 public:
  using IoDone = std::function<void(Status status, size_t bytes)>;

  virtual ~Transport() = default;

  /// Gets the stream ready (TLS handshake). Called once, first.
  virtual void Start(std::function<void(Status status)> done) = 0;
  /// Reads some bytes; success with 0 bytes is the end of input. At most one pending. `into` must
  /// live until `done`.
  virtual void Read(std::span<char> into, IoDone done) = 0;
  /// Writes some bytes, at least one. At most one pending. `bytes` must live until `done`.
  virtual void Write(std::string_view bytes, IoDone done) = 0;
  /// Tells the peer that nothing more comes; reading goes on. Requires no pending Write. `done` is
  /// called or dropped when the transport needs no longer be kept alive for it.
  virtual void ShutdownSend(std::function<void()> done) = 0;
  /// Ends the stream. Pending operations complete with an error later. Idempotent.
  virtual void Close() = 0;

  /// Calls `fire` once after `delay`; replaces the timer set before.
  virtual void SetTimer(Duration delay, std::function<void()> fire) = 0;
  virtual void CancelTimer() = 0;
  virtual TimePoint Now() const = 0;

  /// Runs `task` on the loop soon. Any thread.
  virtual void Post(std::function<void()> task) = 0;

  /// "127.0.0.1:51234", for logs.
  virtual std::string peer() const = 0;
};

}  // namespace tessera::net
