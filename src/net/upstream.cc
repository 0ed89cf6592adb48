// SPDX-License-Identifier: Apache-2.0
#include "net/upstream.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/thread.h"
#include "net/stream_transport.h"
#include "net/upstream_connection.h"

namespace tessera::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// A call on its way, of one loop's thread but for `is_cancelled`.
struct Pending {
  UpstreamAddress address;
  std::string bytes;
  bool is_head = false;
  std::shared_ptr<UpstreamListener> listener;
  std::atomic<bool> is_cancelled{false};
  bool is_over = false;

  std::shared_ptr<UpstreamConnection> connection;  // While it has one.
  std::shared_ptr<tcp::socket> connecting;
  std::shared_ptr<asio::steady_timer> timer;

  void End(const UpstreamEnd& end) {
    if (std::exchange(is_over, true)) return;
    std::exchange(listener, nullptr)->OnEnd(end);
  }
};

/// One io_context, its thread, its open calls and kept connections.
class ClientLoop : public std::enable_shared_from_this<ClientLoop> {
 public:
  explicit ClientLoop(const UpstreamOptions& options)
      : options_(options), work_(context_.get_executor()) {}

  Status Run() {
    TESSERA_ASSIGN_OR_RETURN(thread_, StartThread("upstream", [this] { context_.run(); }));
    return {};
  }
  /// Ends all calls, then the thread.
  void Stop() {
    asio::post(context_, [this] {
      is_stopping_ = true;
      for (const auto& pending : std::vector(calls_.begin(), calls_.end())) CancelNow(pending);
      for (auto& [address, kept] : kept_)
        for (const Kept& one : kept) one.connection->Close();
      kept_.clear();
    });
    work_.reset();
    if (thread_.joinable()) thread_.join();
  }

  void Begin(std::shared_ptr<Pending> pending) {
    asio::post(context_, [this, pending = std::move(pending)] {
      calls_.insert(pending);
      if (pending->is_cancelled || is_stopping_) return CancelNow(pending);
      Dispatch(pending);
    });
  }
  void Cancel(std::shared_ptr<Pending> pending) {
    pending->is_cancelled = true;
    asio::post(context_, [this, pending = std::move(pending)] { CancelNow(pending); });
  }

 private:
  struct Kept {
    std::shared_ptr<UpstreamConnection> connection;
    TimePoint since;
  };

  void Finish(const std::shared_ptr<Pending>& pending, const UpstreamEnd& end) {
    calls_.erase(pending);
    pending->connection = nullptr;
    pending->connecting = nullptr;
    if (pending->timer) pending->timer->cancel();
    pending->End(end);
  }

  void CancelNow(const std::shared_ptr<Pending>& pending) {
    if (pending->is_over || !calls_.contains(pending)) return;
    if (const auto connection = pending->connection) return connection->Cancel();
    error_code ignored;
    if (pending->connecting) pending->connecting->close(ignored);
    Finish(pending, {Cancelled("the call was cancelled"), false});
  }

  void Dispatch(const std::shared_ptr<Pending>& pending) {
    if (auto kept = TakeKept(pending->address)) return Use(pending, std::move(kept), true);
    Connect(pending);
  }

  std::shared_ptr<UpstreamConnection> TakeKept(const UpstreamAddress& address) {
    const auto found = kept_.find(address);
    if (found == kept_.end()) return nullptr;
    std::vector<Kept>& kept = found->second;
    std::shared_ptr<UpstreamConnection> connection;
    // The newest is the likeliest to be open still; if it is too old, so are all.
    if (!kept.empty() && kept.back().connection->Now() - kept.back().since < options_.keep_alive) {
      connection = std::move(kept.back().connection);
      kept.pop_back();
    } else {
      for (const Kept& old : kept) old.connection->Close();
      kept.clear();
    }
    if (kept.empty()) kept_.erase(found);
    return connection;
  }

  void Keep(const UpstreamAddress& address, std::shared_ptr<UpstreamConnection> connection) {
    std::vector<Kept>& kept = kept_[address];
    const TimePoint now = connection->Now();
    while (!kept.empty() && (kept.size() >= options_.kept_per_address ||
                             now - kept[0].since > options_.keep_alive)) {
      kept[0].connection->Close();
      kept.erase(kept.begin());
    }
    kept.push_back({std::move(connection), now});
  }

  void Connect(const std::shared_ptr<Pending>& pending) {
    error_code ec;
    const auto address = asio::ip::make_address(pending->address.host, ec);
    if (ec)
      return Finish(
          pending,
          {InvalidArgument(fmt::format("{} is no numeric address", pending->address.host)), false});
    pending->connecting = std::make_shared<tcp::socket>(context_);
    pending->timer = std::make_shared<asio::steady_timer>(context_);
    pending->timer->expires_after(
        std::chrono::duration_cast<asio::steady_timer::duration>(options_.connect_timeout));
    pending->timer->async_wait([socket = pending->connecting](const error_code& cancelled) {
      error_code ignored;
      if (!cancelled) socket->close(ignored);
    });
    pending->connecting->async_connect(
        tcp::endpoint(address, pending->address.port),
        [this, pending, socket = pending->connecting](const error_code& failed) {
          if (pending->is_over) return;
          pending->timer->cancel();
          if (failed) return Finish(pending, {ConnectError(*pending, failed), false});
          pending->connecting = nullptr;
          Use(pending,
              std::make_shared<UpstreamConnection>(MakeTcpTransport(std::move(*socket)), options_),
              false);
        });
  }

  static Status ConnectError(const Pending& pending, const error_code& failed) {
    const std::string where =
        fmt::format("connecting to {}:{}", pending.address.host, pending.address.port);
    // Only our timer closes a socket that connects for a call that goes on.
    if (failed == asio::error::operation_aborted)
      return DeadlineExceeded(where + ": no answer in time");
    return Unavailable(fmt::format("{}: {}", where, failed.message()));
  }

  void Use(const std::shared_ptr<Pending>& pending, std::shared_ptr<UpstreamConnection> connection,
           bool was_kept) {
    pending->connection = connection;
    connection->Begin(
        pending->bytes, pending->is_head, pending->listener,
        [this, pending, connection, was_kept](const UpstreamConnection::Outcome& outcome) {
          pending->connection = nullptr;
          // Closed while it was kept: nothing of this call was read by anybody.
          const bool is_stale = was_kept && !outcome.got_bytes && !pending->is_cancelled &&
                                outcome.end.status.code() == Code::kUnavailable && !is_stopping_;
          if (is_stale) return Dispatch(pending);
          if (outcome.is_reusable && !is_stopping_)
            Keep(pending->address, connection);
          else
            connection->Close();
          Finish(pending, outcome.end);
        });
  }

  const UpstreamOptions& options_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
  // Of the loop's thread.
  std::unordered_set<std::shared_ptr<Pending>> calls_;
  std::map<UpstreamAddress, std::vector<Kept>> kept_;
  bool is_stopping_ = false;
};

}  // namespace

class UpstreamClient::Impl {
 public:
  explicit Impl(UpstreamOptions options) : options_(options) {}
  ~Impl() {
    for (const auto& loop : loops_) loop->Stop();
  }

  Status Start() {
    TESSERA_CHECK(options_.loop_threads > 0);
    for (int i = 0; i < options_.loop_threads; ++i) {
      loops_.push_back(std::make_shared<ClientLoop>(options_));
      TESSERA_RETURN_IF_ERROR(loops_.back()->Run());
    }
    return {};
  }

  UpstreamCall Send(std::shared_ptr<Pending> pending) {
    const auto& loop = loops_[next_.fetch_add(1, std::memory_order_relaxed) % loops_.size()];
    loop->Begin(pending);
    return UpstreamCall([loop = std::weak_ptr(loop), pending = std::weak_ptr(pending)] {
      const auto alive = loop.lock();
      const auto call = pending.lock();
      if (alive && call) alive->Cancel(call);
    });
  }

 private:
  const UpstreamOptions options_;
  std::vector<std::shared_ptr<ClientLoop>> loops_;
  std::atomic<size_t> next_{0};
};

UpstreamClient::UpstreamClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UpstreamClient::~UpstreamClient() = default;

Result<std::unique_ptr<UpstreamClient>> UpstreamClient::Start(UpstreamOptions options) {
  auto impl = std::make_unique<Impl>(options);
  TESSERA_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<UpstreamClient>(new UpstreamClient(std::move(impl)));
}

UpstreamCall UpstreamClient::Send(UpstreamAddress address, ClientRequest request,
                                  std::shared_ptr<UpstreamListener> listener) {
  TESSERA_CHECK(listener != nullptr);
  if (const Status status = CheckRequest(request); !status.ok()) {
    listener->OnEnd({status, false});
    return {};
  }
  auto pending = std::make_shared<Pending>();
  pending->bytes = SerializeRequest(request, address.host, address.port);
  pending->address = std::move(address);
  pending->is_head = request.method == "HEAD";
  pending->listener = std::move(listener);
  return impl_->Send(std::move(pending));
}

}  // namespace tessera::net
