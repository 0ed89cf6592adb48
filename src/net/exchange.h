// SPDX-License-Identifier: Apache-2.0
//
// Exchange: the state shared by a ResponseWriter (any thread) and the connection that sends its
// bytes (loop thread). It turns answers into message bytes, bounds what is queued, and reports the
// peer's departure exactly once. Internal; response_writer.h is the contract for handlers.
//
// Invariants: (1) bytes are queued only while the peer is there and the answer is incomplete;
// (2) `unsent` = queued + taken by the connection and not yet written; (3) on_disconnect is called
// at most once, and only when the answer was incomplete; (4) `wake` is called only between
// construction and Detach, under the lock, so that Detach ends all use of the connection.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/errors.h"
#include "net/http.h"

namespace tessera::net {

class Exchange {
 public:
  struct Config {
    bool is_head = false;     // Drop bodies.
    bool is_http11 = true;    // Streams may be chunked.
    bool keep_alive = true;   // What the request allows.
    uint64_t unsent_max = 0;  // limits.h `unsent_bytes`.
    /// True once the server drains: answers then carry `Connection: close`.
    std::shared_ptr<const std::atomic<bool>> is_draining;
    ErrorHook error_hook;
  };

  /// `wake` asks the connection to call Take soon; it must not block or call back.
  Exchange(Config config, std::function<void()> wake);

  // The handler's side: see ResponseWriter.
  Status Send(Response response);
  Status StartStream(int status, Headers headers);
  Status Write(std::string_view bytes);
  Status Finish();
  void OnDisconnect(std::function<void()> callback);
  bool is_disconnected() const;
  uint64_t unsent_bytes() const;
  Status WaitForRoom(Duration timeout);
  /// The last writer is gone: an incomplete answer becomes a 500 or a broken stream.
  void Abandon();

  // The connection's side.
  struct Output {
    std::string bytes;
    bool is_complete = false;  // Nothing comes after these bytes.
  };
  Output Take();
  /// The connection must be cut: slow reader, or a stream that nobody will finish.
  bool is_broken() const;
  /// `bytes` of those taken went to the peer.
  void Written(uint64_t bytes);
  /// The peer is gone. No effect once the answer is complete.
  void Disconnect();
  /// No more wake calls after this returns.
  void Detach();
  /// True if the whole answer was handed over by the handler.
  bool is_answered() const;
  /// True if the connection ends after this answer. Requires is_answered().
  bool closes() const { return closes_; }
  /// For the access log.
  int status() const;
  uint64_t body_bytes() const;

 private:
  enum class State : uint8_t { kWaiting, kStreaming, kAnswered, kBroken, kGone };

  Status CheckState(State expected) const;
  void QueueHead(int status, const Headers& headers, std::string_view framing);
  void Wake();

  const Config config_;
  mutable std::mutex mutex_;
  std::condition_variable room_;  // unsent fell, or the peer is gone.
  std::function<void()> wake_;
  std::function<void()> on_disconnect_;
  State state_ = State::kWaiting;
  bool is_chunked_ = false;
  bool closes_ = false;
  bool wake_pending_ = false;
  int status_ = 0;
  uint64_t body_bytes_ = 0;
  uint64_t taken_ = 0;  // Bytes the connection holds and has not written.
  std::string queued_;
};

}  // namespace tessera::net
