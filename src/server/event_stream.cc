// SPDX-License-Identifier: Apache-2.0
#include "server/event_stream.h"

#include <utility>

#include "base/check.h"

namespace tessera::server {

void EventStream::Begin() {
  if (std::exchange(has_begun_, true)) return;
  // Errors of the reply mean that the peer has gone; its disconnect cancels the generation.
  (void)reply_.StartStream(200, {{"Content-Type", "text/event-stream; charset=utf-8"},
                                 {"Cache-Control", "no-cache"},
                                 {"X-Accel-Buffering", "no"}});
}

void EventStream::Send(const net::SseEvent& event) {
  Begin();
  Write(net::EncodeSse(event));
}

void EventStream::SendData(std::string_view data) {
  Begin();
  Write(net::EncodeSseData(data));
}

void EventStream::SendWhole(net::Response response) {
  TESSERA_CHECK(!has_begun_);
  has_begun_ = is_over_ = true;
  (void)reply_.Send(std::move(response));
}

void EventStream::Finish() {
  is_over_ = true;
  (void)reply_.Finish();
}

void EventStream::PingIfSilent(TimePoint now, Duration silence) {
  if (is_over_ || now - last_write_ < silence) return;
  Begin();
  Write(net::EncodeSseComment("ping"));
}

void EventStream::Write(std::string_view bytes) {
  last_write_ = clock_->Now();
  (void)reply_.Write(bytes);
}

void EventStreams::Watch(std::weak_ptr<EventStream> stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
}

void EventStreams::Tick(TimePoint now, Duration silence) {
  std::vector<std::shared_ptr<EventStream>> alive;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(streams_, [&](const std::weak_ptr<EventStream>& weak) {
      auto stream = weak.lock();
      if (stream == nullptr) return true;
      alive.push_back(std::move(stream));
      return false;
    });
  }
  for (const auto& stream : alive) stream->PingIfSilent(now, silence);
}

}  // namespace tessera::server
