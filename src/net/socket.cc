// SPDX-License-Identifier: Apache-2.0
#include "net/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

namespace tessera::net {
namespace {

Status FromErrno(std::string_view what) {
  return Unavailable(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

bool WouldBlock() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

void ClientSocket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Status ClientSocket::Wait(short events, Duration timeout) const {
  const TimePoint deadline = Clock::Real().Now() + timeout;
  while (true) {
    pollfd fds[2] = {{fd_, events, 0}, {cancel_fd_, POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::Real().Now());
    if (left.count() < 0) return DeadlineExceeded("the peer did not respond in time");
    const int ready = poll(fds, cancel_fd_ >= 0 ? 2 : 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return FromErrno("poll");
    if (cancel_fd_ >= 0 && (fds[1].revents & POLLIN) != 0)
      return Cancelled("the call was cancelled");
    if (ready > 0 && fds[0].revents != 0) return {};
    if (ready == 0) return DeadlineExceeded("the peer did not respond in time");
  }
}

Status ClientSocket::Connect(const std::string& host, uint16_t port, Duration timeout) {
  Close();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found))
    return NotFound(fmt::format("host {}: {}", host, gai_strerror(rc)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  Status last = Unavailable("no address");
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Close();
    fd_ = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return FromErrno("socket");
    last = Status();
    if (connect(fd_, at->ai_addr, at->ai_addrlen) != 0) {
      last = errno == EINPROGRESS ? Wait(POLLOUT, timeout) : FromErrno("connect");
      socklen_t size = sizeof(errno);
      if (last.ok() && getsockopt(fd_, SOL_SOCKET, SO_ERROR, &errno, &size) == 0 && errno != 0)
        last = FromErrno("connect");
    }
    if (last.ok()) {
      const int on = 1;
      setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return {};
    }
    if (last.code() == Code::kCancelled) break;
  }
  Close();
  return std::move(last).WithContext(fmt::format("connecting to {} port {}", host, port));
}

Status ClientSocket::SendAll(std::string_view bytes, Duration timeout) {
  while (!bytes.empty()) {
    TESSERA_RETURN_IF_ERROR(Wait(POLLOUT, timeout));
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0 && !WouldBlock()) return FromErrno("send");
  }
  return {};
}

Result<size_t> ClientSocket::Receive(std::span<char> into, Duration timeout) {
  while (true) {
    TESSERA_RETURN_IF_ERROR(Wait(POLLIN, timeout));
    const ssize_t received = recv(fd_, into.data(), into.size(), 0);
    if (received >= 0) return static_cast<size_t>(received);
    if (!WouldBlock()) return Fail(FromErrno("receive"));
  }
}

}  // namespace tessera::net
