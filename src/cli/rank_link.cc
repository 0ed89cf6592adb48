// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_link.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/random.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kPrefix = "tessera-ranks-";
constexpr int kWaitingRanks = 64;

struct Address {
  sockaddr_un address = {};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

/// A first byte of zero makes it a name that is no file (unix(7), "abstract").
std::optional<Address> AddressOf(std::string_view name) {
  Address made;
  made.address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof made.address.sun_path) return std::nullopt;
  std::memcpy(made.address.sun_path + 1, name.data(), name.size());
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return made;
}

std::optional<ucred> PeerOf(int fd) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

bool IsOwn(int fd) {
  const auto peer = PeerOf(fd);
  return peer.has_value() && peer->uid == geteuid();
}

/// The descriptor that came with a message, or -1.
int TakeFd(const msghdr& message) {
  int fd = -1;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), part))
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
      std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
  return fd;
}

}  // namespace

RankLink::RankLink(RankLink&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RankLink& RankLink::operator=(RankLink&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RankLink::~RankLink() {
  if (fd_ >= 0) close(fd_);
}

Result<RankLink> RankLink::Connect(std::string_view group) {
  const auto address = AddressOf(group);
  if (!address.has_value()) return Fail(InvalidArgument("the group's name is too long"));
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return Fail(ErrnoStatus(errno, "making a socket for", "the rank group"));
  RankLink link(fd);
  if (connect(fd, address->get(), address->size) != 0)
    return Fail(NotFound(
        fmt::format("no supervisor of the rank group on this host: {}", std::strerror(errno))));
  if (!IsOwn(fd)) return Fail(PermissionDenied("the rank group's supervisor is another user's"));
  return link;
}

pid_t RankLink::Peer() const {
  const auto peer = PeerOf(fd_);
  return peer.has_value() ? peer->pid : 0;
}

Status RankLink::Send(RankWord word, std::string_view text, int fd) {
  char kind = static_cast<char>(word);
  std::string body(text.substr(0, kRankTextBytesMax));
  std::array<iovec, 2> parts = {iovec{&kind, 1}, iovec{body.data(), body.size()}};
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = body.empty() ? 1 : 2;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  }
  while (sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    if (errno != EINTR) return ErrnoStatus(errno, "telling", "the rank group");
  return {};
}

Result<std::optional<RankMessage>> RankLink::Receive(bool waits) {
  std::array<char, 1 + kRankTextBytesMax> bytes;
  iovec part = {bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do got = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
  while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return Fail(Unavailable("nothing was said yet"));
  if (got <= 0) return std::optional<RankMessage>();  // A reset is an end, too.
  return RankMessage{.word = static_cast<RankWord>(bytes[0]),
                     .text = std::string(bytes.data() + 1, static_cast<size_t>(got) - 1),
                     .fd = TakeFd(message)};
}

void RankLink::EndSending() {
  shutdown(fd_, SHUT_WR);
}

RankDoor::RankDoor(RankDoor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}

RankDoor::~RankDoor() {
  if (fd_ >= 0) close(fd_);
}

Result<RankDoor> RankDoor::Open() {
  std::string name = fmt::format("{}{:016x}{:016x}", kPrefix, SystemRandom64(), SystemRandom64());
  const auto address = AddressOf(name);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Fail(ErrnoStatus(errno, "making a socket for", "the rank group"));
  RankDoor door(fd, std::move(name));
  if (bind(fd, address->get(), address->size) != 0 || listen(fd, kWaitingRanks) != 0)
    return Fail(ErrnoStatus(errno, "making a socket for", "the rank group"));
  return door;
}

std::optional<RankLink> RankDoor::Accept() {
  while (true) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno == EINTR) continue;
    if (fd < 0) return std::nullopt;
    RankLink link(fd);
    if (IsOwn(fd)) return link;
  }
}

}  // namespace tessera::cli
