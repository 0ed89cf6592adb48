// SPDX-License-Identifier: Apache-2.0
#include "net/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "net/connection.h"
#include "net/endpoint_name.h"
#include "net/listener.h"
#include "net/stream_transport.h"
#include "net/worker_pool.h"

namespace tessera::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Connections over the limit that are still told so with a 503; beyond them, silence.
constexpr uint64_t kRefusedOpenMax = 64;
// After an accept that failed for want of descriptors or memory, rather than spinning on it.
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);

Status ToStatus(const error_code& ec, const std::string& what) {
  if (ec == asio::error::address_in_use)
    return AlreadyExists(what + ": the port is taken; choose another or stop the other process");
  if (ec == asio::error::access_denied)
    return PermissionDenied(what + ": this user may not listen there");
  return InvalidArgument(what + ": " + ec.message());
}

/// "[::1]" as in URLs -> "::1"; any other host as it is.
std::string_view WithoutBrackets(std::string_view host) {
  const bool has_brackets = host.starts_with('[') && host.ends_with(']') && host.contains(':');
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

bool IsLoopback(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  return address.is_loopback();
}

Status RefuseBeyondLoopback(const ServerOptions& options, const asio::ip::address& address,
                            const std::string& what) {
  if (!options.loopback_only || IsLoopback(address)) return {};
  return FailedPrecondition(
      fmt::format("{}: other machines can reach {}", what, address.to_string()));
}

/// The socket of `listen_fd`.
Result<tcp::acceptor> TakeOver(asio::io_context& context, const ServerOptions& options) {
  const int fd = *options.listen_fd;
  const std::string what = fmt::format("listening on descriptor {}", fd);
  int is_listening = 0, domain = 0;
  socklen_t size = sizeof is_listening;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0)
    return Fail(InvalidArgument(what + ": it is no listening socket"));
  size = sizeof domain;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
      (domain != AF_INET && domain != AF_INET6))
    return Fail(InvalidArgument(what + ": it is no TCP socket"));
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  tcp::acceptor acceptor(context);
  error_code ec;
  acceptor.assign(domain == AF_INET6 ? tcp::v6() : tcp::v4(), fd, ec);
  if (ec) return Fail(ToStatus(ec, what));
  const tcp::endpoint endpoint = acceptor.local_endpoint(ec);
  if (ec) return Fail(ToStatus(ec, what));
  TESSERA_RETURN_IF_ERROR(RefuseBeyondLoopback(options, endpoint.address(), what));
  return acceptor;
}

/// Opened, bound and listening.
Result<tcp::acceptor> Listen(asio::io_context& context, const ServerOptions& options) {
  if (options.listen_fd.has_value()) return TakeOver(context, options);
  const std::string& host = options.host;
  const uint16_t port = options.port;
  const std::string what = fmt::format("listening on {} port {}", host, port);
  error_code ec;
  tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(WithoutBrackets(host), std::to_string(port), tcp::resolver::passive, ec);
  if (ec || found.empty()) return Fail(ToStatus(ec, what));
  const tcp::endpoint endpoint = found.begin()->endpoint();
  TESSERA_RETURN_IF_ERROR(RefuseBeyondLoopback(options, endpoint.address(), what));
  tcp::acceptor acceptor(context);
  if (acceptor.open(endpoint.protocol(), ec); ec) return Fail(ToStatus(ec, what));
  if (acceptor.set_option(tcp::acceptor::reuse_address(true), ec); ec)
    return Fail(ToStatus(ec, what));
  if (acceptor.bind(endpoint, ec); ec) return Fail(ToStatus(ec, what));
  if (acceptor.listen(asio::socket_base::max_listen_connections, ec); ec)
    return Fail(ToStatus(ec, what));
  return acceptor;
}

/// What all loops share. Outlives them.
struct Shared {
  ServerOptions options;
  Handler handler;
  std::shared_ptr<asio::ssl::context> tls;  // Under `mutex`.
  std::shared_ptr<std::atomic<bool>> is_draining = std::make_shared<std::atomic<bool>>(false);
  Counters counters;
  std::unique_ptr<WorkerPool> workers;
  std::mutex mutex;
  std::condition_variable all_closed;  // counters.open fell to 0.

  std::shared_ptr<asio::ssl::context> CurrentTls() {
    const std::lock_guard lock(mutex);
    return tls;
  }
};

/// One io_context, its thread and its connections. Everything but Post belongs to that thread.
class Loop final : public ConnectionHost {
 public:
  explicit Loop(Shared* shared) : shared_(shared), work_(context_.get_executor()) {}

  asio::io_context& context() { return context_; }
  ~Loop() { Join(); }

  Status Run() {
    TESSERA_ASSIGN_OR_RETURN(thread_, StartThread("an HTTP loop", [this] { context_.run(); }));
    return {};
  }
  template <class Task>
  void Post(Task task) {
    asio::post(context_, std::move(task));
  }

  void Adopt(tcp::socket socket, bool is_refused) {
    auto tls = shared_->CurrentTls();
    auto transport = tls ? MakeTlsTransport(std::move(socket), std::move(tls))
                         : MakeTcpTransport(std::move(socket));
    auto connection = std::make_shared<Connection>(std::move(transport), this);
    connections_.emplace(connection.get(), connection);
    is_refused ? connection->StartRefused() : connection->Start();
  }
  void DrainAll() {
    for (const auto& connection : Snapshot()) connection->Drain();
  }
  void CloseAll() {
    for (const auto& connection : Snapshot()) connection->Close();
  }
  /// Runs what is still pending, then ends the thread. Requires that no connection is left.
  void Join() {
    work_.reset();
    if (thread_.joinable()) thread_.join();
  }

  const Limits& limits() const override { return shared_->options.limits; }
  const ErrorHook& error_hook() const override { return shared_->options.error_hook; }
  std::shared_ptr<const std::atomic<bool>> draining() const override {
    return shared_->is_draining;
  }
  Counters& counters() override { return shared_->counters; }
  const BodyReceiverHook& body_receiver_hook() const override {
    return shared_->options.body_receiver_hook;
  }
  bool Dispatch(Request& request, const ResponseWriter& writer,
                std::shared_ptr<BodyReceiver> receiver) override {
    auto holder = std::make_shared<Request>(std::move(request));
    return shared_->workers->TryPost(
        [shared = shared_, holder, writer, receiver = std::move(receiver)]() mutable {
          if (receiver != nullptr)
            receiver->OnComplete(std::move(*holder), std::move(writer));
          else
            shared->handler(std::move(*holder), std::move(writer));
        });
  }
  void Closed(Connection* connection) override {
    connections_.erase(connection);
    const std::lock_guard lock(shared_->mutex);
    if (shared_->counters.open == 0) shared_->all_closed.notify_all();
  }

 private:
  std::vector<std::shared_ptr<Connection>> Snapshot() const {
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    return all;
  }

  Shared* shared_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::thread thread_;
};

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Handler handler) {
    shared_.options = std::move(options);
    shared_.handler = std::move(handler);
  }
  ~Impl() { Stop(); }

  Status Start();
  Status Drain(Duration timeout);
  Status ReloadTls();
  void Stop();

  bool has_tls() const { return shared_.options.tls.has_value(); }

  const tcp::endpoint& endpoint() const { return endpoint_; }
  const Counters& counters() const { return shared_.counters; }

 private:
  void Accept();
  void OnAccept(const error_code& ec, tcp::socket socket, Loop* loop);
  void CloseAcceptor();
  bool WaitAllClosed(Duration timeout);

  Shared shared_;
  std::vector<std::unique_ptr<Loop>> loops_;
  // Of the first loop's thread once that runs.
  std::optional<tcp::acceptor> acceptor_;
  std::optional<asio::steady_timer> accept_timer_;
  tcp::endpoint endpoint_;
  size_t next_loop_ = 0;
  bool is_running_ = false;
};

Status Server::Impl::Start() {
  const ServerOptions& options = shared_.options;
  TESSERA_CHECK(options.loop_threads > 0 && options.worker_threads > 0 && shared_.handler);
  if (options.tls) {
    TESSERA_ASSIGN_OR_RETURN(shared_.tls, MakeTlsContext(*options.tls));
  }
  for (int i = 0; i < options.loop_threads; ++i) loops_.push_back(std::make_unique<Loop>(&shared_));
  asio::io_context& context = loops_[0]->context();
  TESSERA_ASSIGN_OR_RETURN(acceptor_, Listen(context, options));
  accept_timer_.emplace(context);
  error_code ec;
  endpoint_ = acceptor_->local_endpoint(ec);
  TESSERA_ASSIGN_OR_RETURN(
      shared_.workers, WorkerPool::Make(options.worker_threads, options.limits.queued_requests));
  for (const auto& loop : loops_) TESSERA_RETURN_IF_ERROR(loop->Run());
  loops_[0]->Post([this] { Accept(); });  // Not before all loops run: a server starts whole.
  is_running_ = true;
  return {};
}

Status Server::Impl::ReloadTls() {
  if (!has_tls()) return {};
  TESSERA_ASSIGN_OR_RETURN(auto tls, MakeTlsContext(*shared_.options.tls));
  const std::lock_guard lock(shared_.mutex);
  shared_.tls = std::move(tls);
  return {};
}

void Server::Impl::Accept() {
  Loop* loop = loops_[next_loop_++ % loops_.size()].get();
  acceptor_->async_accept(loop->context(), [this, loop](const error_code& ec, tcp::socket socket) {
    OnAccept(ec, std::move(socket), loop);
  });
}

void Server::Impl::OnAccept(const error_code& ec, tcp::socket socket, Loop* loop) {
  if (!acceptor_->is_open()) return;
  if (ec) {
    if (ec == asio::error::connection_aborted) return Accept();
    log::warn("net: accepting a connection failed: {}", ec.message());
    accept_timer_->expires_after(kAcceptRetry);
    accept_timer_->async_wait([this](const error_code& cancelled) {
      if (!cancelled && acceptor_->is_open()) Accept();
    });
    return;
  }
  Counters& counters = shared_.counters;
  const uint64_t open_max = shared_.options.limits.connections;
  const bool is_refused = counters.open >= open_max;
  counters.accepted.fetch_add(1);
  if (is_refused) counters.refused.fetch_add(1);
  if (counters.open < open_max + kRefusedOpenMax)
    loop->Post([loop, is_refused, peer = std::move(socket)]() mutable {
      loop->Adopt(std::move(peer), is_refused);
    });
  Accept();
}

void Server::Impl::CloseAcceptor() {
  // Waits for the loop to do it: after that no connection can be added.
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  loops_[0]->Post([&] {
    error_code ignored;
    acceptor_->close(ignored);
    accept_timer_->cancel();
    const std::lock_guard lock(mutex);
    is_done = true;
    done.notify_one();
  });
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return is_done; });
}

bool Server::Impl::WaitAllClosed(Duration timeout) {
  std::unique_lock lock(shared_.mutex);
  return shared_.all_closed.wait_for(lock, timeout, [&] { return shared_.counters.open == 0; });
}

Status Server::Impl::Drain(Duration timeout) {
  if (!is_running_) return {};
  shared_.is_draining->store(true);
  CloseAcceptor();
  for (const auto& loop : loops_) loop->Post([raw = loop.get()] { raw->DrainAll(); });
  const bool in_time = WaitAllClosed(timeout);
  const uint64_t left = shared_.counters.requests_open;
  Stop();
  if (in_time || left == 0) return {};
  return DeadlineExceeded(fmt::format("{} requests were cut at the end of the drain", left));
}

void Server::Impl::Stop() {
  if (!is_running_) return;
  is_running_ = false;
  shared_.is_draining->store(true);
  CloseAcceptor();
  // A connection that was accepted but not yet adopted closes itself: the server drains.
  for (const auto& loop : loops_) loop->Post([raw = loop.get()] { raw->CloseAll(); });
  shared_.workers->Stop();
  for (const auto& loop : loops_) loop->Join();
  TESSERA_CHECK(shared_.counters.open == 0);
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<int> OpenListener(const ServerOptions& options) {
  asio::io_context context;
  TESSERA_ASSIGN_OR_RETURN(tcp::acceptor acceptor, Listen(context, options));
  error_code ec;
  const int fd = acceptor.release(ec);
  if (ec) return Fail(ToStatus(ec, "listening"));
  return fd;
}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  TESSERA_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

uint16_t Server::port() const {
  return impl_->endpoint().port();
}
std::string Server::address() const {
  return EndpointName(impl_->endpoint());
}
bool Server::has_tls() const {
  return impl_->has_tls();
}
Status Server::ReloadTls() {
  return impl_->ReloadTls();
}
Status Server::Drain(Duration timeout) {
  return impl_->Drain(timeout);
}

ServerStats Server::stats() const {
  const Counters& counters = impl_->counters();
  return {.connections_accepted = counters.accepted,
          .connections_refused = counters.refused,
          .connections_open = counters.open,
          .requests = counters.requests,
          .requests_open = counters.requests_open,
          .disconnects = counters.disconnects};
}

}  // namespace tessera::net
