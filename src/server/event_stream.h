// SPDX-License-Identifier: Apache-2.0
//
// EventStream: the server-sent events of one answer. It sends the head with the first event, so
// that a request which fails before it still gets its HTTP status, and keeps a silent connection
// alive with comments. With a journal, events carry ids and are kept, so that a client whose
// connection broke can go on from the last one it has. All of it belongs to the task thread, except
// construction and what event_streams.h says.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/sse.h"
#include "server/reply.h"

namespace tessera::server {

class EventStream {
 public:
  /// `clock` must outlive the stream. `journal_id`: the answer's id if it keeps a journal, else
  /// empty.
  EventStream(Reply reply, const Clock* clock, std::string journal_id = {});

  /// Who asked for it.
  engine::ClientId owner() const { return owner_; }
  bool has_begun() const { return has_begun_; }
  bool has_journal() const { return !journal_id_.empty(); }
  const std::string& journal_id() const { return journal_id_; }

  /// Sends the head, once; Send does it, too.
  void Begin();
  void Send(net::SseEvent event);
  /// The usual case: data alone.
  void SendData(std::string_view data);
  /// Instead of a stream. Requires that none has begun.
  void SendWhole(net::Response response);
  void Finish();

  /// Writes a comment when nothing was written for `silence`. From then on the status is 200, and
  /// errors are events.
  void PingIfSilent(TimePoint now, Duration silence);

  // With a journal.

  /// What ends the generation when no client comes back in time. Before any event.
  void OnAbandon(std::function<void()> callback) { abandon_ = std::move(callback); }
  /// Another connection goes on behind event number `after` (0: from the beginning); the one there
  /// was is cut. kOutOfRange when these events are no longer kept, kInvalidArgument when there was
  /// no such event; the connection is then left to the caller.
  Status Attach(Reply reply, uint64_t after);
  /// True once nobody can need it any more: a client was away for `grace`, in which case the
  /// generation is ended, or the answer is complete for as long.
  bool IsForgotten(TimePoint now, Duration grace);
  bool is_over() const { return over_since_.has_value(); }

 private:
  void Write(std::string_view bytes);
  void Keep(std::string bytes);

  Reply reply_;
  const engine::ClientId owner_;
  const Clock* const clock_;
  const std::string journal_id_;
  bool has_begun_ = false;
  std::optional<TimePoint> over_since_;
  TimePoint last_write_;

  // The journal: the newest events, numbered from 1.
  std::deque<std::string> events_;
  uint64_t first_ = 1;  // Number of events_.front().
  uint64_t next_ = 1;
  size_t bytes_ = 0;
  std::optional<net::Response> whole_;  // Instead of events.
  std::function<void()> abandon_;
  std::optional<TimePoint> away_since_;
};

}  // namespace tessera::server
