// SPDX-License-Identifier: Apache-2.0
//
// EventStream: the server-sent events of one answer. It sends the head with the first event, so
// that a request which fails before it still gets its HTTP status, and keeps a silent connection
// alive with comments. All of it belongs to the task thread, except construction.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/sse.h"
#include "server/reply.h"

namespace tessera::server {

class EventStream {
 public:
  /// `clock` must outlive the stream.
  EventStream(Reply reply, const Clock* clock)
      : reply_(std::move(reply)), clock_(clock), last_write_(clock->Now()) {}

  bool has_begun() const { return has_begun_; }
  /// Sends the head, once; Send does it, too.
  void Begin();
  void Send(const net::SseEvent& event);
  /// The usual case: data alone.
  void SendData(std::string_view data);
  /// Instead of a stream. Requires that none has begun.
  void SendWhole(net::Response response);
  void Finish();

  /// Writes a comment when nothing was written for `silence`. From then on the status is 200, and
  /// errors are events.
  void PingIfSilent(TimePoint now, Duration silence);

 private:
  void Write(std::string_view bytes);

  const Reply reply_;
  const Clock* const clock_;
  bool has_begun_ = false;
  bool is_over_ = false;
  TimePoint last_write_;
};

/// The streams that are kept alive. Thread-safe.
class EventStreams {
 public:
  /// Pings it from now on, as long as somebody else holds it.
  void Watch(std::weak_ptr<EventStream> stream);
  /// Task thread, every second or so.
  void Tick(TimePoint now, Duration silence);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<EventStream>> streams_;
};

}  // namespace tessera::server
