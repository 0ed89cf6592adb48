// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"
#include "gateway/control/prober.h"
#include "net/upstream.h"

namespace tessera::gateway {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(20);

/// Shared with answers on their way.
struct State {
  struct Watched {
    net::UpstreamAddress address;
    std::function<void()> on_ready;
    uint64_t number = 0;
    bool is_asking = false;
    TimePoint ask_at{};
    net::UpstreamCall call;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Watched, std::less<>> watched;
  uint64_t last_number = 0;
  bool is_ending = false;

  /// An answer to question `number` of this worker.
  void Answered(const std::string& id, uint64_t number, bool is_ready) {
    std::function<void()> on_ready;
    {
      const std::lock_guard lock(mutex);
      const auto found = watched.find(id);
      if (found == watched.end() || found->second.number != number) return;
      found->second.is_asking = false;
      found->second.ask_at = Clock::Real().Now() + kAskEvery;
      if (is_ready) {
        on_ready = std::move(found->second.on_ready);
        watched.erase(found);
      }
    }
    changed.notify_one();
    if (on_ready) on_ready();
  }
};

class Answer final : public net::UpstreamListener {
 public:
  Answer(std::shared_ptr<State> state, std::string id, uint64_t number)
      : state_(std::move(state)), id_(std::move(id)), number_(number) {}
  void OnHead(net::Response head) override { status_ = head.status; }
  void OnBody(std::string_view) override {}
  void OnEnd(const net::UpstreamEnd& end) override {
    state_->Answered(id_, number_, end.status.ok() && status_ == 200);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string id_;
  const uint64_t number_;
  int status_ = 0;
};

class HttpProber final : public Prober {
 public:
  explicit HttpProber(std::unique_ptr<net::UpstreamClient> client) : client_(std::move(client)) {}
  ~HttpProber() override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->is_ending = true;
    }
    state_->changed.notify_one();
    if (thread_.joinable()) thread_.join();
    client_.reset();
  }
  Status Run() {
    TESSERA_ASSIGN_OR_RETURN(thread_, StartThread("prober", [this] { Ask(); }));
    return {};
  }

  void Watch(const WorkerRecord& worker, std::function<void()> on_ready) override {
    {
      const std::lock_guard lock(state_->mutex);
      State::Watched& watched = state_->watched[worker.id];
      watched.address.host = worker.host;
      watched.address.port = static_cast<uint16_t>(worker.port);
      watched.on_ready = std::move(on_ready);
      watched.number = ++state_->last_number;
    }
    state_->changed.notify_one();
  }

  void Forget(std::string_view worker_id) override {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->watched.find(worker_id);
    if (found == state_->watched.end()) return;
    found->second.call.Cancel();  // Only posts; its answer comes to nobody.
    state_->watched.erase(found);
  }

 private:
  void Ask() {
    std::unique_lock lock(state_->mutex);
    while (!state_->is_ending) {
      const TimePoint now = Clock::Real().Now();
      TimePoint next = TimePoint::max();
      for (auto& [id, watched] : state_->watched) {
        if (watched.is_asking) continue;
        if (watched.ask_at > now) {
          next = std::min(next, watched.ask_at);
          continue;
        }
        watched.is_asking = true;
        watched.call = client_->Send(watched.address, {.method = "GET", .target = "/readyz"},
                                     std::make_shared<Answer>(state_, id, watched.number));
      }
      if (next == TimePoint::max())
        state_->changed.wait(lock);
      else
        state_->changed.wait_until(lock, next);
    }
  }

  std::unique_ptr<net::UpstreamClient> client_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Prober>> MakeHttpProber() {
  // A worker that loads answers 503 at once; one that computes its first token takes its time.
  TESSERA_ASSIGN_OR_RETURN(auto client, net::UpstreamClient::Start({}));
  auto prober = std::make_unique<HttpProber>(std::move(client));
  TESSERA_RETURN_IF_ERROR(prober->Run());
  return std::unique_ptr<Prober>(std::move(prober));
}

}  // namespace tessera::gateway
