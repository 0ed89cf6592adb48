// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "cli/environment.h"

#include "base/file.h"

extern char** environ;

namespace tessera::cli {
namespace {

// mpirun ends the others by itself when one is gone, and then says how; it is given time for it.
constexpr std::chrono::seconds kMpirunPatience{5};
// It gives them a second for it, which a server would drain in; a group that lacks a rank cannot.
// By then it has seen who was the first.
constexpr std::chrono::milliseconds kCutPatience{250};
constexpr std::chrono::seconds kKillPatience{5};
constexpr int kCannotRun = 127;  // As shells have it.

Result<std::string> FindMpirun() {
  const std::string path = Environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    std::string candidate = path.substr(at, end - at) + "/mpirun";
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return Fail(NotFound(
      "--rank-processes: there is no mpirun in PATH; install Open MPI (Debian: openmpi-bin), or "
      "leave the flag out: ranks are threads then"));
}

/// This process's own, and what makes mpirun leave the cores to the ranks, who divide them
/// (runtime/worker_plan.h). Variables that are set already, and mpirun's options, win. As root it
/// wants to be told that this is meant: whoever started this process as root has said so.
std::vector<std::string> MpirunEnvironment(const std::string& group) {
  std::vector<std::string> all = {fmt::format("{}={}", kRankGroupVariable, group)};
  std::vector<std::string> defaults = {"OMPI_MCA_hwloc_base_binding_policy=none",
                                       "OMPI_MCA_rmaps_base_oversubscribe=1"};
  if (geteuid() == 0)
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"})
      defaults.emplace_back(name);
  const auto is_of = [](std::string_view name) {
    return [name](std::string_view text) { return text.starts_with(name); };
  };
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (name == std::string(kRankGroupVariable) + "=") continue;
    std::erase_if(defaults, is_of(name));
    all.emplace_back(text);
  }
  all.insert(all.end(), defaults.begin(), defaults.end());
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Between fork and exec: only calls that are safe there (signal-safety(7)). A group of its own, so
/// that Ctrl-C in a terminal comes to the supervisor alone.
[[noreturn]] void BecomeMpirun(char* const* arguments, char* const* environment, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotRun);  // It was killed in between.
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT, SIGHUP, SIGCHLD})
    sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_fd >= 0 && dup2(null_fd, 0) >= 0) execve(arguments[0], arguments, environment);
  _exit(kCannotRun);
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (code > 128) return fmt::format("was ended by signal {}", code - 128);
  return code == 0 ? "ended" : fmt::format("ended with status {}", code);
}

/// -1: it is none.
int NumberOf(std::string_view text) {
  int number = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && number >= 0 ? number : -1;
}

}  // namespace

Result<std::unique_ptr<RankGroup>> RankGroup::Start(const RankGroupOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(RankDoor door, RankDoor::Open());
  std::unique_ptr<RankGroup> group(new RankGroup(std::move(door), options.ranks));
  group->listener_ = options.listener;
  TESSERA_RETURN_IF_ERROR(group->StartMpirun(options));
  return group;
}

Status RankGroup::StartMpirun(const RankGroupOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const std::string program, FindMpirun());
  // Ranks of other hosts get the variable, too: by it they know that they are not to supervise.
  std::vector<std::string> arguments = {program, "-x", kRankGroupVariable};
  arguments.insert(arguments.end(), options.mpirun_options.begin(), options.mpirun_options.end());
  arguments.insert(arguments.end(), {"-n", std::to_string(ranks_)});
  arguments.insert(arguments.end(), options.command.begin(), options.command.end());
  std::vector<std::string> environment = MpirunEnvironment(door_.name());
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
  const pid_t self = getpid(), pid = fork();
  if (pid == 0) BecomeMpirun(argv.data(), envp.data(), self);
  if (pid < 0) return ErrnoStatus(errno, "starting", program);
  setpgid(pid, pid);  // As the child does: whoever comes first.
  mpirun_ = pid;
  return {};
}

RankGroup::~RankGroup() {
  if (has_ended()) return;
  KillAll();
  if (mpirun_ > 0) waitpid(mpirun_, nullptr, 0);
}

bool RankGroup::has_ended() const {
  return mpirun_ == 0 && links_.empty();
}

void RankGroup::AddWaits(std::vector<pollfd>* fds, std::optional<TimePoint>* until) const {
  fds->push_back({door_.fd(), POLLIN, 0});
  for (const Rank& rank : links_) fds->push_back({rank.link.fd(), POLLIN, 0});
  for (const auto& at : {cut_at_, ask_at_, kill_at_})
    if (at.has_value() && (!until->has_value() || *at < **until)) *until = at;
}

void RankGroup::LookAtRank(Rank* rank, bool* has_ended) {
  while (true) {
    auto received = rank->link.Receive(/*waits=*/false);
    if (!received.has_value()) return;
    *has_ended = !received->has_value();
    if (*has_ended) return;
    RankMessage& message = **received;
    if (message.fd >= 0) close(message.fd);  // Nobody sends one here.
    switch (message.word) {
      case RankWord::kHello:
        rank->number = NumberOf(message.text);
        if (rank->number == 0) (void)rank->link.Send(RankWord::kListener, "", listener_);
        break;
      case RankWord::kReady:
        is_ready_ = rank->number == 0;
        break;
      case RankWord::kLeaving:
        is_leaving_ = !first_gone_.has_value();
        break;
      case RankWord::kError:
        if (error_.empty()) error_ = std::move(message.text);
        break;
      default:
        break;
    }
  }
}

void RankGroup::LookAtMpirun() {
  if (mpirun_ == 0) return;
  int status = 0;
  if (waitpid(mpirun_, &status, WNOHANG) != mpirun_) return;
  mpirun_ = 0;
  mpirun_status_ = status;
}

void RankGroup::Look(TimePoint now) {
  while (auto link = door_.Accept()) {
    const pid_t pid = link->Peer();
    links_.push_back({std::move(*link), pid});
    ++here_;
  }
  const size_t before = links_.size();
  std::erase_if(links_, [&](Rank& rank) {
    bool has_ended = false;
    LookAtRank(&rank, &has_ended);
    if (has_ended && !first_gone_.has_value() && !is_ending_)
      first_gone_ = {.number = rank.number, .pid = rank.pid};
    return has_ended;
  });
  LookAtMpirun();
  if (mpirun_ == 0) {
    // Ranks that it left behind.
    if (!links_.empty() && !kill_at_.has_value()) End(now);
  } else if (links_.size() < before && !ask_at_.has_value() && !is_ending_) {
    ask_at_ = now + kMpirunPatience;
    if (!is_leaving_) cut_at_ = now + kCutPatience;
  }
  if (cut_at_.has_value() && now >= *cut_at_) {
    cut_at_.reset();
    for (Rank& rank : links_) rank.link.EndSending();
  }
  if (ask_at_.has_value() && now >= *ask_at_) End(now);
  if (kill_at_.has_value() && now >= *kill_at_) {
    KillAll();
    kill_at_ = now + kKillPatience;  // Nothing is left to do but to look again.
  }
}

void RankGroup::Tell(RankWord word) {
  for (Rank& rank : links_)
    if (rank.number == 0) (void)rank.link.Send(word);
}

void RankGroup::End(TimePoint now) {
  is_ending_ = true;
  ask_at_.reset();
  cut_at_.reset();
  if (kill_at_.has_value()) return;
  kill_at_ = now + kKillPatience;
  for (Rank& rank : links_) rank.link.EndSending();
  if (mpirun_ > 0) kill(mpirun_, SIGTERM);
}

void RankGroup::KillAll() {
  // A link that is open belongs to a process that lives: no other has its number.
  for (const Rank& rank : links_)
    if (rank.pid > 0) kill(rank.pid, SIGKILL);
  if (mpirun_ > 0) kill(-mpirun_, SIGKILL);
}

bool RankGroup::was_crash() const {
  return WIFSIGNALED(mpirun_status_) || WEXITSTATUS(mpirun_status_) > 128;
}

std::string RankGroup::Why() const {
  if (!error_.empty()) return error_;
  if (WIFSIGNALED(mpirun_status_)) return "mpirun " + HowItEnded(mpirun_status_);
  if (WEXITSTATUS(mpirun_status_) == kCannotRun) return "mpirun could not run";
  // With ranks on other hosts nobody here sees who was the first.
  if (first_gone_.has_value() && first_gone_->number >= 0 && here_ == ranks_)
    return fmt::format("rank {} (process {}) {}", first_gone_->number, first_gone_->pid,
                       HowItEnded(mpirun_status_));
  return fmt::format("a rank {}; what mpirun printed stands above", HowItEnded(mpirun_status_));
}

}  // namespace tessera::cli
