// SPDX-License-Identifier: Apache-2.0
#include "gateway/launch/local/local_launcher.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "base/file.h"

namespace tessera::gateway {
namespace {

constexpr int kBacklog = 128;
constexpr uint64_t kLastLineBytes = 4096;
constexpr size_t kReasonBytesMax = 500;

struct ListeningSocket {
  int fd;
  int64_t port;
};

Result<ListeningSocket> ListenOnLoopback() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Fail(ErrnoStatus(errno, "making a socket for", "a worker"));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, generic, size) != 0 || listen(fd, kBacklog) != 0 ||
      getsockname(fd, generic, &size) != 0) {
    const int error = errno;
    close(fd);
    return Fail(ErrnoStatus(error, "listening for", "a worker"));
  }
  return ListeningSocket{fd, ntohs(address.sin_port)};
}

/// The newest bytes of a file.
Result<std::string> ReadTail(const std::filesystem::path& path, uint64_t bytes_max) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Fail(ErrnoStatus(errno, "opening", path));
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  const uint64_t take = std::min(size, bytes_max);
  std::string text(take, '\0');
  file.seekg(static_cast<std::streamoff>(size - take));
  file.read(text.data(), static_cast<std::streamsize>(take));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<std::unique_ptr<LocalLauncher>> LocalLauncher::Make(LocalLauncherOptions options) {
  std::error_code error;
  std::filesystem::create_directories(options.log_dir, error);
  if (error) return Fail(ErrnoStatus(error.value(), "making the folder of logs", options.log_dir));
  return std::unique_ptr<LocalLauncher>(new LocalLauncher(std::move(options)));
}

std::filesystem::path LocalLauncher::LogOf(std::string_view worker_id) const {
  return options_.log_dir / fmt::format("{}.log", worker_id);
}

Result<WorkerRecord> LocalLauncher::Prepare(const WorkerOrder& order) {
  TESSERA_RETURN_IF_ERROR(CheckOrder(order));
  TESSERA_ASSIGN_OR_RETURN(const ListeningSocket socket, ListenOnLoopback());
  ChildOptions child{
      .program = options_.program,
      .arguments = {"serve"},
      .environment = {"TESSERA_API_KEY=" + order.key, "TESSERA_WORKER_ID=" + order.worker_id},
      .socket_fd = socket.fd,
      .log = LogOf(order.worker_id)};
  child.arguments.insert(child.arguments.end(), order.arguments.begin(), order.arguments.end());
  child.arguments.insert(child.arguments.end(),
                         {"--listen-fd", std::to_string(kChildSocket), "--drain-seconds",
                          std::to_string(options_.drain_seconds)});
  if (!options_.lease.empty())
    child.arguments.insert(child.arguments.end(), {"--lease", options_.lease.string()});
  auto held = HeldChild::Make(child);
  close(socket.fd);  // The child has its own; when it ends, calls are refused at once.
  if (!held.has_value()) return Fail(held.error());
  const ProcessName process = held->process();
  prepared_.clear();
  prepared_.emplace(order.worker_id, *std::move(held));
  return WorkerRecord{.id = order.worker_id,
                      .endpoint_id = order.endpoint_id,
                      .generation = order.generation,
                      .pid = process.pid,
                      .start_ticks = process.start_ticks,
                      .port = socket.port,
                      .key = order.key,
                      .started_at = Clock::Real().UnixSeconds()};
}

Status LocalLauncher::Run(std::string_view worker_id) {
  const auto found = prepared_.find(worker_id);
  if (found == prepared_.end()) return NotFound("no worker of this name was prepared");
  const ProcessName process = found->second.process();
  const Status running = found->second.Run();
  prepared_.erase(found);
  if (running.ok())
    workers_[std::string(worker_id)] = {.process = process, .is_child = true, .was_killed = false};
  return running;
}

bool LocalLauncher::Adopt(const WorkerRecord& record) {
  const ProcessName process{record.pid, record.start_ticks};
  if (!IsAlive(process)) return false;
  workers_[record.id] = {.process = process, .is_child = false, .was_killed = false};
  return true;
}

void LocalLauncher::Drain(std::string_view worker_id) {
  const auto found = workers_.find(worker_id);
  if (found != workers_.end()) SignalGroup(found->second.process, SIGTERM);
}

void LocalLauncher::Kill(std::string_view worker_id) {
  const auto found = workers_.find(worker_id);
  if (found == workers_.end()) return;
  found->second.was_killed = true;
  SignalGroup(found->second.process, SIGKILL);
}

std::string LocalLauncher::LastLine(std::string_view worker_id) const {
  std::string text = ReadTail(LogOf(worker_id), kLastLineBytes).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t begin = text.rfind('\n');
  std::string line = begin == std::string::npos ? text : text.substr(begin + 1);
  if (line.size() > kReasonBytesMax) line.resize(kReasonBytesMax);
  return line;
}

std::string LocalLauncher::ExitReason(const std::string& id, const Worker& worker) const {
  if (!worker.is_child) return IsAlive(worker.process) ? "" : "it ended";
  const auto pid = static_cast<pid_t>(worker.process.pid);
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return "it ended";
  if (info.si_pid == 0) return "";
  // What it started ends with it; until it is reaped its number is nobody else's.
  (void)kill(-pid, SIGKILL);
  int status = 0;
  if (waitpid(pid, &status, 0) < 0) return "it ended";
  if (WIFSIGNALED(status))
    return worker.was_killed ? "killed" : fmt::format("ended by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return "it ended";
  const std::string line = LastLine(id);
  return fmt::format("exit status {}{}{}", WEXITSTATUS(status), line.empty() ? "" : ": ", line);
}

std::vector<WorkerExit> LocalLauncher::TakeExits() {
  std::vector<WorkerExit> exits;
  for (auto at = workers_.begin(); at != workers_.end();) {
    std::string reason = ExitReason(at->first, at->second);
    if (reason.empty()) {
      TrimLog(at->first);
      ++at;
      continue;
    }
    exits.push_back({at->first, std::move(reason)});
    at = workers_.erase(at);
  }
  if (!exits.empty()) RemoveOldLogs();
  return exits;
}

// The worker appends, so that it goes on at the new end.
void LocalLauncher::TrimLog(std::string_view worker_id) const {
  const std::filesystem::path path = LogOf(worker_id);
  std::error_code ignored;
  const uint64_t size = std::filesystem::file_size(path, ignored);
  if (ignored || size <= kLogBytesMax) return;
  const auto tail = ReadTail(path, kLogBytesMax / 2);
  if (!tail.has_value()) return;
  std::filesystem::path older = path;
  older += ".1";
  if (WriteFileAtomic(older, *tail).ok()) std::filesystem::resize_file(path, 0, ignored);
}

void LocalLauncher::RemoveOldLogs() const {
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> ended;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(options_.log_dir, ignored)) {
    const std::filesystem::path& path = entry.path();
    const bool is_kept = path.extension() != ".log" || workers_.contains(path.stem().string()) ||
                         prepared_.contains(path.stem().string());
    if (!is_kept) ended.emplace_back(entry.last_write_time(ignored), path);
  }
  std::ranges::sort(ended, std::ranges::greater());
  for (size_t i = kEndedLogsMax; i < ended.size(); ++i) {
    std::filesystem::remove(ended[i].second, ignored);
    std::filesystem::remove(ended[i].second += ".1", ignored);
  }
}

Result<std::string> LocalLauncher::ReadLog(std::string_view worker_id, uint64_t bytes_max) const {
  if (!IsWorkerId(worker_id)) return Fail(NotFound("no worker has this name"));
  return ReadTail(LogOf(worker_id), bytes_max);
}

}  // namespace tessera::gateway
