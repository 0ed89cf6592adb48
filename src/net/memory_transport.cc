// SPDX-License-Identifier: Apache-2.0
#include "net/memory_transport.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tessera::net {

class MemoryTransport final : public Transport {
 public:
  explicit MemoryTransport(std::shared_ptr<MemoryLink> link) : link_(std::move(link)) {}

  void Start(std::function<void(Status)> done) override {
    Post([done = std::move(done)] { done(Status()); });
  }
  void Read(std::span<char> into, IoDone done) override {
    TESSERA_CHECK(!link_->read_ && !into.empty());
    link_->read_.emplace(into, std::move(done));
  }
  void Write(std::string_view bytes, IoDone done) override {
    TESSERA_CHECK(!link_->write_ && !bytes.empty() && !link_->server_shut_);
    link_->write_.emplace(bytes, std::move(done));
  }
  void ShutdownSend(std::function<void()>) override {
    TESSERA_CHECK(!link_->write_);
    link_->server_shut_ = true;
  }
  void Close() override { link_->server_closed_ = true; }
  void SetTimer(Duration delay, std::function<void()> fire) override {
    link_->timer_.emplace(link_->now_ + delay, std::move(fire));
  }
  void CancelTimer() override { link_->timer_.reset(); }
  TimePoint Now() const override { return link_->now_; }
  void Post(std::function<void()> task) override {
    const std::lock_guard lock(link_->mutex_);
    link_->tasks_.push_back(std::move(task));
  }
  std::string peer() const override { return "memory"; }

 private:
  const std::shared_ptr<MemoryLink> link_;
};

std::unique_ptr<Transport> MakeMemoryTransport(std::shared_ptr<MemoryLink> link) {
  return std::make_unique<MemoryTransport>(std::move(link));
}

bool MemoryLink::RunTask() {
  std::function<void()> task;
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  return true;
}

bool MemoryLink::RunRead() {
  if (!read_) return false;
  const size_t available = to_server_.size() - to_server_start_;
  const bool fails = server_closed_ || is_reset_ || fail_read_ == 1;
  if (!fails && available == 0 && !peer_closed_) return false;
  PendingRead read = std::move(*read_);
  read_.reset();
  if (fail_read_ > 0) --fail_read_;
  if (fails) {
    read.done(Unavailable("the connection is gone"), 0);
    return true;
  }
  const size_t bytes = std::min({available, read.into.size(), grain_});
  std::copy_n(to_server_.data() + to_server_start_, bytes, read.into.data());
  to_server_start_ += bytes;
  read.done(Status(), bytes);
  return true;
}

bool MemoryLink::RunWrite() {
  if (!write_) return false;
  const bool fails = server_closed_ || is_reset_ || fail_write_ == 1;
  const size_t bytes = std::min({write_->bytes.size(), static_cast<size_t>(window_), grain_});
  if (!fails && bytes == 0) return false;
  PendingWrite write = std::move(*write_);
  write_.reset();
  if (fail_write_ > 0) --fail_write_;
  if (fails) {
    write.done(Unavailable("the connection is gone"), 0);
    return true;
  }
  received_.append(write.bytes.substr(0, bytes));
  if (window_ != UINT64_MAX) window_ -= bytes;
  write.done(Status(), bytes);
  return true;
}

void MemoryLink::Run() {
  while (RunTask() || RunWrite() || RunRead()) {
  }
}

void MemoryLink::Advance(Duration duration) {
  const TimePoint end = now_ + duration;
  Run();
  while (timer_ && timer_->at <= end) {
    now_ = std::max(now_, timer_->at);
    const std::function<void()> fire = std::move(timer_->fire);
    timer_.reset();
    fire();
    Run();
  }
  now_ = end;
}

}  // namespace tessera::net
