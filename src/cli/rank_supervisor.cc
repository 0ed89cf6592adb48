// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/environment.h"
#include "cli/lease.h"
#include "cli/rank_group.h"
#include "cli/restart_policy.h"
#include "cli/terminal.h"
#include "cli/validators.h"

#include "base/clock.h"
#include "base/file.h"

namespace tessera::cli {
namespace {

constexpr int kRestartsMax = 1000;
// Rank 0 cuts what is not finished after --drain-seconds; then ranks take leave of each other.
constexpr std::chrono::seconds kLeavePatience{10};

class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options)
      : options_(options), listener_(options.listener), policy_(options.restarts) {}
  ~Supervisor() {
    for (const int fd : {signals_, listener_})
      if (fd >= 0) close(fd);
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Status Run();

 private:
  Status BlockSignals();
  Status StartGroup();
  void Wait();
  void TakeSignals(TimePoint now);
  void TakeSignal(int signal, TimePoint now);
  void BeginDrain(int signal, TimePoint now);
  /// The group has ended: nothing while it goes on.
  std::optional<Status> AfterEnd(TimePoint now);

  const SupervisorOptions& options_;
  std::vector<std::string> command_;
  int listener_;
  int signals_ = -1;
  RestartPolicy policy_;
  std::unique_ptr<RankGroup> group_;       // Null between an end and the next start.
  std::optional<TimePoint> start_at_{};    // Then.
  int ending_signal_ = 0;                  // What this process was asked to end by.
  bool was_serving_ = false;               // When it was.
  std::optional<TimePoint> give_up_at_{};  // A drain that takes longer is cut.
};

Status Supervisor::BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) return ErrnoStatus(errno, "making a descriptor for", "signals");
  return {};
}

Status Supervisor::StartGroup() {
  start_at_.reset();
  TESSERA_ASSIGN_OR_RETURN(group_, RankGroup::Start({.ranks = options_.ranks,
                                                     .mpirun_options = options_.mpirun_options,
                                                     .command = command_,
                                                     .listener = listener_}));
  return {};
}

void Supervisor::Wait() {
  std::vector<pollfd> fds = {{signals_, POLLIN, 0}};
  std::optional<TimePoint> until = start_at_;
  if (group_ != nullptr) group_->AddWaits(&fds, &until);
  if (give_up_at_.has_value() && (!until.has_value() || *give_up_at_ < *until)) until = give_up_at_;
  int timeout_ms = -1;
  if (until.has_value()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::Real().Now());
    timeout_ms = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 3'600'000));
  }
  poll(fds.data(), fds.size(), timeout_ms);
}

void Supervisor::BeginDrain(int signal, TimePoint now) {
  ending_signal_ = signal;
  was_serving_ = group_ != nullptr && group_->is_ready();
  close(std::exchange(listener_, -1));  // Rank 0 closes its own: nobody waits for what will not be.
  if (group_ == nullptr) return;
  if (!was_serving_) return group_->End(now);
  group_->Tell(RankWord::kDrain);
  give_up_at_ = now + std::chrono::seconds(options_.drain_seconds) + kLeavePatience;
}

void Supervisor::TakeSignal(int signal, TimePoint now) {
  if (signal == SIGHUP && group_ != nullptr) group_->Tell(RankWord::kReload);
  if (signal != SIGTERM && signal != SIGINT) return;
  if (ending_signal_ == 0) return BeginDrain(signal, now);
  if (group_ != nullptr) group_->End(now);
}

void Supervisor::TakeSignals(TimePoint now) {
  signalfd_siginfo info = {};
  while (read(signals_, &info, sizeof info) == sizeof info)
    TakeSignal(static_cast<int>(info.ssi_signo), now);
  if (!give_up_at_.has_value() || now < *give_up_at_) return;
  give_up_at_.reset();
  if (group_ != nullptr) group_->End(now);
}

std::optional<Status> Supervisor::AfterEnd(TimePoint now) {
  const bool ended_well = group_->ended_well(), was_crash = group_->was_crash();
  const std::string why = group_->Why();
  group_.reset();
  if (ending_signal_ != 0 && !was_serving_) return Status();
  if (ended_well) return Status();  // Also when rank 0 itself was asked to end.
  if (ending_signal_ != 0) return Unavailable("while it drained: " + why);
  const auto delay = policy_.Ended(was_crash, now);
  if (!delay.has_value())
    return Unavailable(fmt::format("the rank group ended: {}; {}", why, policy_.GaveUp()));
  Note(
      "the rank group ended: {}; it is started again{} ({} of at most {} times within {} "
      "minutes)\n",
      why,
      *delay > Duration::zero()
          ? fmt::format(" in {} s", std::chrono::ceil<std::chrono::seconds>(*delay).count())
          : "",
      policy_.count(), options_.restarts, kRestartWindow.count());
  start_at_ = now + *delay;
  return std::nullopt;
}

Status Supervisor::Run() {
  std::error_code error;
  command_ = {std::filesystem::read_symlink("/proc/self/exe", error).string()};
  if (error) return ErrnoStatus(error.value(), "reading", "/proc/self/exe");
  command_.insert(command_.end(), options_.arguments.begin(), options_.arguments.end());
  TESSERA_RETURN_IF_ERROR(BlockSignals());
  if (!options_.lease.empty()) TESSERA_RETURN_IF_ERROR(EndWithLease(options_.lease));
  TESSERA_RETURN_IF_ERROR(StartGroup());
  while (true) {
    Wait();
    const TimePoint now = Clock::Real().Now();
    TakeSignals(now);
    if (group_ != nullptr) {
      group_->Look(now);
      if (group_->is_ready()) policy_.Ready();
      if (group_->has_ended())
        if (auto end = AfterEnd(now)) {
          if (ending_signal_ != 0 && !was_serving_) _exit(128 + ending_signal_);
          return *std::move(end);
        }
    } else if (ending_signal_ != 0) {
      _exit(128 + ending_signal_);
    } else if (now >= start_at_) {
      TESSERA_RETURN_IF_ERROR(StartGroup());
    }
  }
}

}  // namespace

void AddRankProcessOptions(CLI::App* verb, RankProcessOptions* options) {
  CLI::Option* on = verb->add_flag(
      "--rank-processes", options->is_on,
      "Run each rank of --tp in a process of its own, by mpirun, and start them again when one "
      "dies; without it ranks are threads of this process, which is faster on one machine");
  verb->add_option("--hostfile", options->hostfile,
                   "Hosts of the ranks, as mpirun reads them; this one comes first")
      ->check(CLI::ExistingFile)
      ->needs(on);
  verb->add_option("--mpirun-options", options->mpirun_options,
                   "More for mpirun, separated by blanks, such as \"--mca btl tcp,self\"")
      ->check(PlainText())
      ->needs(on);
  verb->add_option("--rank-restarts", options->restarts,
                   "How often within ten minutes the ranks are started again before the server "
                   "gives up; 0: it ends with the first rank that dies")
      ->check(WholeNumber(0, kRestartsMax))
      ->needs(on)
      ->capture_default_str();
}

Result<std::vector<std::string>> MpirunOptions(const RankProcessOptions& options, int64_t ranks) {
  if (ranks < 2)
    return Fail(InvalidArgument(
        "--rank-processes needs --tp 2 or more: with one rank there is nothing to start"));
  if (JobSize() > 1)
    return Fail(
        InvalidArgument("--rank-processes starts mpirun itself: leave out the one that started "
                        "this process, or the flag"));
  std::istringstream text(options.mpirun_options);
  const std::vector<std::string> words(std::istream_iterator<std::string>(text), {});
  if (!words.empty() && !words.front().starts_with('-'))
    return Fail(InvalidArgument(
        fmt::format("--mpirun-options: \"{}\" is no option of mpirun, it would run it as a program",
                    words.front())));
  constexpr std::array<std::string_view, 5> kCounts = {"-n", "--n", "-np", "--np", "-c"};
  for (const std::string& word : words)
    if (std::ranges::find(kCounts, word) != kCounts.end())
      return Fail(InvalidArgument(
          fmt::format("--mpirun-options: {} is given by --tp, leave it out", word)));
  std::vector<std::string> all;
  if (!options.hostfile.empty()) all = {"--hostfile", options.hostfile};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Status SuperviseRanks(const SupervisorOptions& options) {
  return Supervisor(options).Run();
}

}  // namespace tessera::cli
