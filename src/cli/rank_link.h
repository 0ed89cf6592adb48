// SPDX-License-Identifier: Apache-2.0
//
// RankLink: what the supervisor of a group of rank processes (rank_supervisor.h) and a rank on the
// same host say to each other, over a Unix socket whose name is no file: nothing is left behind by
// a process that was killed. The end of a link is the end of the process at its other end, which is
// how each notices that the other is gone. Linux. Both ends belong to one user, or there is no
// link.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::cli {

enum class RankWord : char {
  kHello = 'h',     // Of a rank, first of all; the text is its number.
  kListener = 'l',  // To rank 0: the listening socket comes along.
  kReady = 'r',     // Of rank 0: it serves.
  kLeaving = 'b',   // Of rank 0: it was asked to end, and drains.
  kError = 'e',     // Of a rank; the text says why it is about to end the group.
  kDrain = 'd',     // To rank 0, as SIGTERM.
  kReload = 'u',    // To rank 0, as SIGHUP.
};
inline constexpr size_t kRankTextBytesMax = 2000;

struct RankMessage {
  RankWord word = RankWord::kHello;
  std::string text{};
  int fd = -1;  // Whoever receives the message owns it.
};

/// One end. Send and Receive may be called by two threads.
class RankLink {
 public:
  /// Of a rank. kNotFound: no such group on this host. kPermissionDenied: it is somebody else's.
  static Result<RankLink> Connect(std::string_view group);
  explicit RankLink(int fd) : fd_(fd) {}
  RankLink(RankLink&& other) noexcept;
  RankLink& operator=(RankLink&& other) noexcept;
  ~RankLink();

  int fd() const { return fd_; }
  /// The process at the other end; it lives as long as the link does. 0 when nobody knows.
  pid_t Peer() const;
  /// Never waits. What is over kRankTextBytesMax of the text is left out; `fd` stays the caller's.
  Status Send(RankWord word, std::string_view text = "", int fd = -1);
  /// The next message; nothing at the end. kUnavailable with `waits` false: none is there yet.
  Result<std::optional<RankMessage>> Receive(bool waits);
  /// The other end receives the end; what it says before it goes is still received here.
  void EndSending();

 private:
  int fd_ = -1;
};

/// The supervisor's: where ranks come to.
class RankDoor {
 public:
  static Result<RankDoor> Open();
  RankDoor(RankDoor&& other) noexcept;
  RankDoor& operator=(RankDoor&&) = delete;
  ~RankDoor();

  int fd() const { return fd_; }
  /// Unique on this host.
  const std::string& name() const { return name_; }
  /// A rank that came; nothing while none does. Others than this user's are turned away.
  std::optional<RankLink> Accept();

 private:
  RankDoor(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  int fd_ = -1;
  std::string name_;
};

}  // namespace tessera::cli
