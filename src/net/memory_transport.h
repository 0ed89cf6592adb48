// SPDX-License-Identifier: Apache-2.0
//
// MemoryTransport: a connection without sockets, threads or real time, for tests and fuzzers. The
// test holds the MemoryLink, plays the peer and turns the loop by hand. A host that answers on
// other threads may do so (Post is locked); all else belongs to the test's thread.
//
//   auto link = std::make_shared<MemoryLink>();
//   auto connection = std::make_shared<Connection>(MakeMemoryTransport(link), &host);
//   connection->Start();
//   link->Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
//   link->Run();
//   link->received()  // "HTTP/1.1 200 OK..."
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/transport.h"

namespace tessera::net {

class MemoryLink {
 public:
  // The peer's side. Effects show when the loop runs.
  void Send(std::string_view bytes) { to_server_.append(bytes); }
  void CloseSend() { peer_closed_ = true; }
  void Reset() { is_reset_ = true; }
  /// The peer takes at most so many more bytes; then writes stay pending.
  void SetWindow(uint64_t bytes) { window_ = bytes; }
  std::string& received() { return received_; }
  /// The server said that nothing more comes, or closed.
  bool is_ended() const { return server_shut_ || server_closed_; }
  bool is_closed() const { return server_closed_; }

  // Faults: the n-th read or write from now (1 = the next) fails.
  void FailRead(uint64_t n) { fail_read_ = n; }
  void FailWrite(uint64_t n) { fail_write_ = n; }
  /// Reads and writes move at most so many bytes at a time.
  void SetGrain(size_t bytes) { grain_ = bytes; }

  /// Turns the loop until nothing is left to do at the present time.
  void Run();
  /// Moves time on, firing the timer on the way.
  void Advance(Duration duration);

 private:
  friend class MemoryTransport;
  struct PendingRead {
    std::span<char> into;
    Transport::IoDone done;
  };
  struct PendingWrite {
    std::string_view bytes;
    Transport::IoDone done;
  };
  struct Timer {
    TimePoint at;
    std::function<void()> fire;
  };

  bool RunTask();
  bool RunRead();
  bool RunWrite();

  std::mutex mutex_;  // tasks_ only.
  std::deque<std::function<void()>> tasks_;
  TimePoint now_{};
  std::optional<Timer> timer_;
  std::optional<PendingRead> read_;
  std::optional<PendingWrite> write_;
  std::string to_server_, received_;
  size_t to_server_start_ = 0;
  uint64_t window_ = UINT64_MAX;
  uint64_t fail_read_ = 0, fail_write_ = 0;
  size_t grain_ = SIZE_MAX;
  bool peer_closed_ = false, is_reset_ = false, server_shut_ = false, server_closed_ = false;
};

std::unique_ptr<Transport> MakeMemoryTransport(std::shared_ptr<MemoryLink> link);

}  // namespace tessera::net
