// SPDX-License-Identifier: Apache-2.0
#include "gateway/forward/forward.h"

#include <mutex>
#include <utility>

namespace tessera::gateway {
namespace {

/// A worker that drains or is not loaded says so before it does anything.
constexpr int kNotNow = 503;

class Call final : public net::UpstreamListener, public std::enable_shared_from_this<Call> {
 public:
  Call(std::shared_ptr<net::UpstreamClient> client, std::shared_ptr<Route> route,
       ForwardRequest request, std::shared_ptr<ForwardSink> sink)
      : client_(std::move(client)),
        route_(std::move(route)),
        request_(std::move(request)),
        sink_(std::move(sink)) {}

  void Acquire() {
    Route::Request wanted{
        .prefix = request_.prefix, .deadline = request_.deadline, .avoid = tried_};
    const uint64_t number =
        route_->Acquire(std::move(wanted), [self = shared_from_this()](Result<Route::Lease> lease) {
          self->OnLease(std::move(lease));
        });
    if (number == 0) return;
    bool ends_here = false;
    {
      const std::lock_guard lock(mutex_);
      // It may have been served, or cancelled, since.
      if (!has_lease_) waiting_ = number;
      if (is_cancelled_ && waiting_ != 0) ends_here = route_->Withdraw(std::exchange(waiting_, 0));
    }
    if (ends_here) End(Cancelled("the caller is gone"));
  }

  void Cancel() {
    net::UpstreamCall call;
    bool ends_here = false;
    {
      const std::lock_guard lock(mutex_);
      is_cancelled_ = true;
      call = call_;
      if (waiting_ != 0) ends_here = route_->Withdraw(std::exchange(waiting_, 0));
    }
    call.Cancel();
    if (ends_here) End(Cancelled("the caller is gone"));
  }

  void OnHead(net::Response head) override {
    is_swallowed_ = head.status == kNotNow && attempts_ < kAttemptsMax;
    if (is_swallowed_) return;
    has_head_ = true;
    sink_->OnHead(std::move(head));
  }
  void OnBody(std::string_view bytes) override {
    if (!is_swallowed_) sink_->OnBody(bytes);
  }
  bool HasRoom() override { return is_swallowed_ || sink_->HasRoom(); }
  void OnEnd(const net::UpstreamEnd& end) override {
    bool is_cancelled = false;
    Route::Lease over;  // Released without our lock: others who wait are served by it.
    {
      const std::lock_guard lock(mutex_);
      is_cancelled = is_cancelled_;
      call_ = {};
      has_lease_ = false;
      over = std::move(lease_);
    }
    over.Release();
    const bool has_failed = is_swallowed_ || end.status.code() == Code::kUnavailable ||
                            (end.status.code() == Code::kDeadlineExceeded && !end.was_sent);
    if (has_failed && !has_head_ && !is_cancelled && attempts_ < kAttemptsMax) {
      is_swallowed_ = false;
      return Acquire();
    }
    End(end.status);
  }

 private:
  void OnLease(Result<Route::Lease> lease) {
    if (!lease.has_value()) return End(lease.error());
    net::ClientRequest request = request_.request;
    const RouteWorker& worker = lease->worker();
    request.headers.Set("Authorization", "Bearer " + worker.key);
    ++attempts_;
    tried_.push_back(worker.id);
    const net::UpstreamAddress address{worker.host, worker.port};
    bool is_cancelled = false;
    uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      waiting_ = 0;
      has_lease_ = true;
      number = ++lease_number_;
      is_cancelled = is_cancelled_;
      lease_ = *std::move(lease);
    }
    if (is_cancelled) return End(Cancelled("the caller is gone"));
    const net::UpstreamCall call = client_->Send(address, std::move(request), shared_from_this());
    const std::lock_guard lock(mutex_);
    // It may have ended since, and another thread may be at the next attempt.
    if (has_lease_ && lease_number_ == number) call_ = call;
    if (is_cancelled_) call.Cancel();
  }

  void End(const Status& status) {
    Route::Lease over;
    {
      const std::lock_guard lock(mutex_);
      over = std::move(lease_);
    }
    over.Release();
    if (const auto sink = std::exchange(sink_, nullptr)) sink->OnEnd(status);
  }

  const std::shared_ptr<net::UpstreamClient> client_;
  const std::shared_ptr<Route> route_;
  const ForwardRequest request_;
  std::shared_ptr<ForwardSink> sink_;
  // Of whoever runs the call at present: one thread after another.
  std::vector<std::string> tried_;
  int attempts_ = 0;
  bool has_head_ = false;
  bool is_swallowed_ = false;  // The answer that comes is a refusal which nobody needs to see.

  std::mutex mutex_;
  Route::Lease lease_;
  net::UpstreamCall call_;
  uint64_t waiting_ = 0;
  uint64_t lease_number_ = 0;  // Of the lease that is or was had.
  bool has_lease_ = false;
  bool is_cancelled_ = false;
};

}  // namespace

CancelForward StartForward(std::shared_ptr<net::UpstreamClient> client,
                           std::shared_ptr<Route> route, ForwardRequest request,
                           std::shared_ptr<ForwardSink> sink) {
  auto call = std::make_shared<Call>(std::move(client), std::move(route), std::move(request),
                                     std::move(sink));
  call->Acquire();
  return [weak = std::weak_ptr(call)] {
    if (const auto alive = weak.lock()) alive->Cancel();
  };
}

}  // namespace tessera::gateway
