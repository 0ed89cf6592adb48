// SPDX-License-Identifier: Apache-2.0
//
// EventStreams: the streams that are open now, for what happens by the clock (comments,
// forgetting), and those with a journal by name. Thread-safe; what is done to a stream is done in
// Tick or posted to the task thread by the caller.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/event_stream.h"

namespace tessera::server {

class EventStreams {
 public:
  /// Pings it from now on, as long as somebody else holds it.
  void Watch(std::weak_ptr<EventStream> stream);
  /// Keeps a stream with a journal until it is forgotten. False when kResumeStreamsMax are kept
  /// already; call Drop if it is never begun.
  bool Keep(std::shared_ptr<EventStream> stream);
  void Drop(std::string_view id);
  /// Null when there is none of that name.
  std::shared_ptr<EventStream> Find(std::string_view id) const;

  /// Task thread, every second or so.
  void Tick(TimePoint now, Duration silence, Duration grace);

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<EventStream>> streams_;
  std::map<std::string, std::shared_ptr<EventStream>, std::less<>> kept_;
};

}  // namespace tessera::server
