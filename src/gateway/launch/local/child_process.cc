// SPDX-License-Identifier: Apache-2.0
#include "gateway/launch/local/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <string_view>

#include "base/file.h"

extern char** environ;

namespace tessera::gateway {
namespace {

constexpr uint64_t kStatBytesMax = 4096;

/// Pointers into `texts`, ended by null, as exec takes them.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> WholeEnvironment(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool is_replaced = false;
    for (const std::string& other : added) is_replaced |= other.starts_with(name);
    if (!is_replaced) all.emplace_back(text);
  }
  return all;
}

/// dup2 onto itself would leave it to be closed by exec.
bool PlaceSocket(int fd) {
  return dup2(fd, kChildSocket) >= 0 && fcntl(kChildSocket, F_SETFD, 0) == 0;
}

struct ChildFds {
  int socket, log;
  int go, go_other_end;  // The child's end of the pipe, and the one that it must not keep open.
  int error;
};

/// False: whoever made this process is gone or wants it no more.
bool WaitForGo(const ChildFds& fds) {
  close(fds.go_other_end);
  char go = 0;
  ssize_t got = 0;
  do got = read(fds.go, &go, 1);
  while (got < 0 && errno == EINTR);
  return got == 1;
}

/// In the child, between fork and exec: only calls that are safe there (signal-safety(7)), since
/// other threads of this process may hold any lock.
[[noreturn]] void BecomeProgram(const char* program, char* const* arguments,
                                char* const* environment, const ChildFds& fds) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD})
    sigaction(signal, &action, nullptr);
  setpgid(0, 0);
  if (!WaitForGo(fds)) _exit(0);
  const int null_fd = open("/dev/null", O_RDONLY);
  // The error pipe goes above all that is placed below, so that nothing overwrites it.
  const int high = fcntl(fds.error, F_DUPFD_CLOEXEC, kChildSocket + 1);
  const bool is_placed = null_fd >= 0 && high >= 0 && dup2(null_fd, 0) >= 0 &&
                         dup2(fds.log, 1) >= 0 && dup2(fds.log, 2) >= 0 &&
                         (fds.socket < 0 || PlaceSocket(fds.socket));
  if (is_placed) {
    const unsigned first = fds.socket < 0 ? kChildSocket : kChildSocket + 1;
    syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC);
    execve(program, arguments, environment);
  }
  const int error = errno;
  (void)!write(high >= 0 ? high : fds.error, &error, sizeof error);
  _exit(127);
}

/// Descriptors above the standard ones and the child's socket, so that placing these in the child
/// overwrites none that is still needed.
Result<int> RaiseFd(int fd) {
  const int raised = fcntl(fd, F_DUPFD_CLOEXEC, kChildSocket + 1);
  const int error = errno;
  close(fd);
  if (raised < 0) return Fail(ErrnoStatus(error, "duplicating a descriptor of", "a worker"));
  return raised;
}

}  // namespace

Result<HeldChild> HeldChild::Make(const ChildOptions& options) {
  std::vector<std::string> arguments = {options.program.string()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = WholeEnvironment(options.environment);
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);

  const int opened =
      open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (opened < 0) return Fail(ErrnoStatus(errno, "opening the log", options.log));
  TESSERA_ASSIGN_OR_RETURN(const int log_fd, RaiseFd(opened));
  int go[2] = {-1, -1}, error[2] = {-1, -1};
  pid_t pid = -1;
  if (pipe2(go, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC) == 0) pid = fork();
  if (pid == 0)
    BecomeProgram(options.program.c_str(), argv.data(), envp.data(),
                  {options.socket_fd, log_fd, go[0], go[1], error[1]});
  const int code = errno;
  for (const int fd : {log_fd, go[0], error[1]})
    if (fd >= 0) close(fd);
  if (pid < 0) {
    for (const int fd : {go[1], error[0]})
      if (fd >= 0) close(fd);
    return Fail(ErrnoStatus(code, "starting", options.program));
  }
  setpgid(pid, pid);  // As the child does: whoever comes first.
  return HeldChild({pid, StartTicks(pid).value_or(0)}, options.program, go[1], error[0]);
}

HeldChild::HeldChild(HeldChild&& other) noexcept
    : process_(other.process_),
      program_(std::move(other.program_)),
      go_fd_(std::exchange(other.go_fd_, -1)),
      error_fd_(std::exchange(other.error_fd_, -1)) {}

HeldChild::~HeldChild() {
  if (go_fd_ >= 0) Abandon();
}

void HeldChild::Abandon() {
  close(std::exchange(go_fd_, -1));  // It reads the end and ends.
  close(std::exchange(error_fd_, -1));
  waitpid(static_cast<pid_t>(process_.pid), nullptr, 0);
}

Status HeldChild::Run() {
  const char byte = 1;
  const ssize_t told = write(go_fd_, &byte, 1);
  int code = 0;
  ssize_t got = 0;
  do got = read(error_fd_, &code, sizeof code);
  while (got < 0 && errno == EINTR);
  if (told == 1 && got <= 0) {
    close(std::exchange(go_fd_, -1));
    close(std::exchange(error_fd_, -1));
    return {};
  }
  Abandon();
  return ErrnoStatus(got > 0 ? code : EPIPE, "starting", program_);
}

Result<int64_t> StartTicks(int64_t pid) {
  const std::filesystem::path path = fmt::format("/proc/{}/stat", pid);
  // Files of /proc have no size to be read by.
  std::ifstream file(path, std::ios::binary);
  std::string stat(kStatBytesMax, '\0');
  file.read(stat.data(), static_cast<std::streamsize>(stat.size()));
  stat.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (stat.empty()) return Fail(NotFound(path.string() + ": no such process"));
  // The second field, the program's name in parentheses, may hold anything; the state follows it.
  constexpr int kFieldsFromStateToStart = 19;
  size_t at = stat.rfind(')');
  if (at == std::string::npos || at + 2 >= stat.size())
    return Fail(DataLoss(path.string() + ": not in the expected form"));
  if (stat[at + 2] == 'Z' || stat[at + 2] == 'X') return Fail(NotFound(path.string() + ": ended"));
  at += 1;
  for (int field = 0; field < kFieldsFromStateToStart && at != std::string::npos; ++field)
    at = stat.find(' ', at + 1);
  int64_t ticks = 0;
  if (at == std::string::npos ||
      std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), ticks).ec != std::errc())
    return Fail(DataLoss(path.string() + ": not in the expected form"));
  return ticks;
}

bool IsAlive(const ProcessName& process) {
  const auto ticks = StartTicks(process.pid);
  return ticks.has_value() && *ticks == process.start_ticks;
}

void SignalGroup(const ProcessName& process, int signal) {
  if (process.pid > 1 && IsAlive(process)) (void)kill(static_cast<pid_t>(-process.pid), signal);
}

}  // namespace tessera::gateway
