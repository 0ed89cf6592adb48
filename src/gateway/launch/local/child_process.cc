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

/// In the child, between fork and exec: only calls that are safe there (signal-safety(7)), since
/// other threads of this process may hold any lock.
[[noreturn]] void BecomeProgram(const char* program, char* const* arguments,
                                char* const* environment, int socket_fd, int log_fd, int error_fd) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD})
    sigaction(signal, &action, nullptr);
  setpgid(0, 0);
  const int null_fd = open("/dev/null", O_RDONLY);
  // The error pipe goes above all that is placed below, so that nothing overwrites it.
  const int high = fcntl(error_fd, F_DUPFD_CLOEXEC, kChildSocket + 1);
  const bool is_placed = null_fd >= 0 && high >= 0 && dup2(null_fd, 0) >= 0 &&
                         dup2(log_fd, 1) >= 0 && dup2(log_fd, 2) >= 0 &&
                         (socket_fd < 0 || PlaceSocket(socket_fd));
  if (is_placed) {
    const unsigned first = socket_fd < 0 ? kChildSocket : kChildSocket + 1;
    syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC);
    execve(program, arguments, environment);
  }
  const int error = errno;
  (void)!write(high >= 0 ? high : error_fd, &error, sizeof error);
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

Result<ProcessName> StartChild(const ChildOptions& options) {
  std::vector<std::string> arguments = {options.program.string()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = WholeEnvironment(options.environment);
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);

  const int opened =
      open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (opened < 0) return Fail(ErrnoStatus(errno, "opening the log", options.log));
  TESSERA_ASSIGN_OR_RETURN(const int log_fd, RaiseFd(opened));
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    const int error = errno;
    close(log_fd);
    return Fail(ErrnoStatus(error, "making a pipe for", options.program));
  }
  const pid_t pid = fork();
  if (pid == 0)
    BecomeProgram(options.program.c_str(), argv.data(), envp.data(), options.socket_fd, log_fd,
                  error_pipe[1]);
  const int fork_error = errno;
  close(log_fd);
  close(error_pipe[1]);
  int child_error = 0;
  ssize_t got = 0;
  if (pid > 0) {
    setpgid(pid, pid);  // As the child does: whoever comes first.
    do got = read(error_pipe[0], &child_error, sizeof child_error);
    while (got < 0 && errno == EINTR);
  }
  close(error_pipe[0]);
  if (pid < 0) return Fail(ErrnoStatus(fork_error, "starting", options.program));
  if (got > 0) {
    waitpid(pid, nullptr, 0);
    return Fail(ErrnoStatus(child_error, "starting", options.program));
  }
  const auto ticks = StartTicks(pid);
  // A child that ended within this moment is told by waitpid like any other.
  return ProcessName{pid, ticks.value_or(0)};
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
