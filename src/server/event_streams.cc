// SPDX-License-Identifier: Apache-2.0
#include "server/event_streams.h"

#include <utility>

#include "server/limits.h"

namespace tessera::server {

void EventStreams::Watch(std::weak_ptr<EventStream> stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
}

bool EventStreams::Keep(std::shared_ptr<EventStream> stream) {
  const std::lock_guard lock(mutex_);
  if (kept_.size() >= kResumeStreamsMax) return false;
  std::string id = stream->journal_id();
  kept_.emplace(std::move(id), std::move(stream));
  return true;
}

void EventStreams::Drop(std::string_view id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(id); found != kept_.end()) kept_.erase(found);
}

std::shared_ptr<EventStream> EventStreams::Find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(id);
  return found == kept_.end() ? nullptr : found->second;
}

void EventStreams::Tick(TimePoint now, Duration silence, Duration grace) {
  std::vector<std::shared_ptr<EventStream>> alive;
  std::vector<std::shared_ptr<EventStream>> kept;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(streams_, [&](const std::weak_ptr<EventStream>& weak) {
      auto stream = weak.lock();
      if (stream == nullptr) return true;
      alive.push_back(std::move(stream));
      return false;
    });
    for (const auto& [id, stream] : kept_) kept.push_back(stream);
  }
  for (const auto& stream : alive) stream->PingIfSilent(now, silence);
  for (const auto& stream : kept)
    if (stream->IsForgotten(now, grace)) Drop(stream->journal_id());
}

}  // namespace tessera::server
