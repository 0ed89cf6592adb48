// SPDX-License-Identifier: Apache-2.0
#include "server/event_stream.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "server/limits.h"

namespace tessera::server {
namespace {

Status StartEvents(const Reply& reply) {
  return reply.StartStream(200, {{"Content-Type", "text/event-stream; charset=utf-8"},
                                 {"Cache-Control", "no-cache"},
                                 {"X-Accel-Buffering", "no"}});
}

}  // namespace

EventStream::EventStream(Reply reply, const Clock* clock, std::string journal_id)
    : reply_(std::move(reply)),
      owner_(reply_.caller().client()),
      clock_(clock),
      journal_id_(std::move(journal_id)),
      last_write_(clock->Now()) {}

void EventStream::Begin() {
  if (std::exchange(has_begun_, true)) return;
  // Errors of the reply mean that the peer has gone; its disconnect cancels the generation.
  (void)StartEvents(reply_);
}

void EventStream::Send(net::SseEvent event) {
  Begin();
  if (has_journal()) event.id = fmt::format("{}:{}", journal_id_, next_++);
  std::string bytes = net::EncodeSse(event);
  Write(bytes);
  if (has_journal()) Keep(std::move(bytes));
}

void EventStream::SendData(std::string_view data) {
  Send({.data = std::string(data)});
}

void EventStream::SendWhole(net::Response response) {
  TESSERA_CHECK(!has_begun_);
  has_begun_ = true;
  over_since_ = clock_->Now();
  if (has_journal()) whole_ = response;
  (void)reply_.Send(std::move(response));
}

void EventStream::Finish() {
  over_since_ = clock_->Now();
  (void)reply_.Finish();
}

void EventStream::PingIfSilent(TimePoint now, Duration silence) {
  if (is_over() || now - last_write_ < silence) return;
  Begin();
  Write(net::EncodeSseComment("ping"));
}

void EventStream::Write(std::string_view bytes) {
  last_write_ = clock_->Now();
  (void)reply_.Write(bytes);
}

void EventStream::Keep(std::string bytes) {
  bytes_ += bytes.size();
  events_.push_back(std::move(bytes));
  while (bytes_ > kResumeBytesMax) {
    bytes_ -= events_.front().size();
    events_.pop_front();
    ++first_;
  }
}

Status EventStream::Attach(Reply reply, uint64_t after) {
  TESSERA_CHECK(has_journal());
  if (whole_.has_value()) {
    (void)reply.Send(*whole_);
    return {};
  }
  if (after >= next_)
    return InvalidArgument(
        fmt::format("event {} was never sent; the last one is {}", after, next_ - 1));
  if (after + 1 < first_)
    return OutOfRange(
        fmt::format("the events after {} are no longer kept, the oldest is {}; ask "
                    "again without Last-Event-ID",
                    after, first_));
  reply_ = std::move(reply);
  has_begun_ = true;
  away_since_.reset();
  last_write_ = clock_->Now();
  (void)StartEvents(reply_);
  for (size_t i = after + 1 - first_; i < events_.size(); ++i) (void)reply_.Write(events_[i]);
  if (is_over()) (void)reply_.Finish();
  return {};
}

bool EventStream::IsForgotten(TimePoint now, Duration grace) {
  if (is_over()) return now - *over_since_ >= grace;
  if (!reply_.disconnected()) return false;
  if (!away_since_.has_value()) away_since_ = now;
  if (now - *away_since_ < grace) return false;
  if (abandon_) abandon_();
  return true;
}

}  // namespace tessera::server
