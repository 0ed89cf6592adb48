// SPDX-License-Identifier: Apache-2.0
#include "base/process_memory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/file.h"

namespace tessera {
namespace {

constexpr uint64_t kProcBytesMax = 16u << 20;

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Files of /proc say no size: read until the end.
Result<std::string> ReadProc(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Fail(ErrnoStatus(errno, "opening", path));
  std::string text;
  std::array<char, 16384> buffer;
  Status status;
  for (;;) {
    const ssize_t bytes = ::read(fd, buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) status = ErrnoStatus(errno, "reading", path);
    if (bytes <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(bytes));
    if (text.size() > kProcBytesMax) status = ResourceExhausted("/proc has too much to say");
    if (!status.ok()) break;
  }
  ::close(fd);
  if (!status.ok()) return Fail(status);
  return text;
}

std::optional<uint64_t> Number(std::string_view text, int base = 10) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// "RssAnon:      152 kB" -> 155648.
Result<uint64_t> KilobytesOf(std::string_view status, std::string_view name) {
  const size_t at = status.find(name);
  if (at == status.npos) return Fail(Unavailable("/proc/self/status has no " + std::string(name)));
  std::string_view rest = status.substr(at + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const auto value = Number(rest);
  if (!value.has_value())
    return Fail(Unavailable("/proc/self/status has no number behind " + std::string(name)));
  return *value << 10;
}

/// Seconds since 1970 at which this process began: field 22 of its stat counts ticks since the
/// boot.
Result<double> StartSeconds() {
  TESSERA_ASSIGN_OR_RETURN(const std::string stat, ReadProc("/proc/self/stat"));
  // The second field is a name in brackets that may hold anything, also a bracket.
  std::string_view rest = stat;
  rest.remove_prefix(std::min(rest.rfind(')'), rest.size()));
  constexpr int kSpacesBefore = 20;
  for (int i = 0; i < kSpacesBefore; ++i)
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  const auto ticks = Number(rest);
  timespec since_boot{};
  if (!ticks.has_value() || ::clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0)
    return Fail(Unavailable("/proc/self/stat has no start time"));
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double up =
      static_cast<double>(since_boot.tv_sec) + static_cast<double>(since_boot.tv_nsec) * 1e-9;
  return now - up + static_cast<double>(*ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

Result<int64_t> CountOpenFds() {
  std::error_code error;
  std::filesystem::directory_iterator fds("/proc/self/fd", error);
  int64_t count = 0;
  while (!error && fds != std::filesystem::directory_iterator()) {
    ++count;
    fds.increment(error);
  }
  if (error) return Fail(Unavailable("/proc/self/fd: " + error.message()));
  return count - 1;  // The one that was open for reading this.
}

}  // namespace

Result<ProcessMemory> ReadProcessMemory() {
  TESSERA_ASSIGN_OR_RETURN(const std::string status, ReadProc("/proc/self/status"));
  ProcessMemory memory;
  TESSERA_ASSIGN_OR_RETURN(memory.anonymous_bytes, KilobytesOf(status, "\nRssAnon:"));
  TESSERA_ASSIGN_OR_RETURN(memory.file_bytes, KilobytesOf(status, "\nRssFile:"));
  TESSERA_ASSIGN_OR_RETURN(memory.shared_bytes, KilobytesOf(status, "\nRssShmem:"));
  memory.resident_bytes = memory.anonymous_bytes + memory.file_bytes + memory.shared_bytes;
  return memory;
}

Result<uint64_t> ResidentBytes(const AddressRange& range) {
  const char* const path = "/proc/self/pagemap";
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Fail(ErrnoStatus(errno, "opening", path));
  constexpr uint64_t kPresent = 1ull << 63;
  std::array<uint64_t, 4096> entries;
  uint64_t page = range.begin / PageBytes();
  const uint64_t end = page + (range.bytes + PageBytes() - 1) / PageBytes();
  uint64_t present = 0;
  Status status;
  while (page < end) {
    const uint64_t wanted = std::min<uint64_t>(end - page, entries.size());
    const ssize_t bytes = ::pread(fd, entries.data(), wanted * sizeof(uint64_t),
                                  static_cast<off_t>(page * sizeof(uint64_t)));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) status = ErrnoStatus(errno, "reading", path);
    const auto got = static_cast<size_t>(std::max<ssize_t>(bytes, 0)) / sizeof(uint64_t);
    if (got == 0) break;
    for (size_t i = 0; i < got; ++i) present += (entries[i] & kPresent) != 0 ? 1 : 0;
    page += got;
  }
  ::close(fd);
  if (!status.ok()) return Fail(status);
  return present * PageBytes();
}

Result<std::vector<AddressRange>> MappingsOf(const std::filesystem::path& file) {
  std::error_code error;
  const std::string wanted = std::filesystem::canonical(file, error).string();
  if (error) return Fail(Unavailable(file.string() + ": " + error.message()));
  TESSERA_ASSIGN_OR_RETURN(const std::string maps, ReadProc("/proc/self/maps"));
  std::vector<AddressRange> ranges;
  for (size_t at = 0; at < maps.size();) {
    const size_t end = std::min(maps.find('\n', at), maps.size());
    const std::string_view line = std::string_view(maps).substr(at, end - at);
    at = end + 1;
    // "7f00-7f10 r--s 00000000 fd:00 123    /path"
    const size_t path = line.find('/');
    const size_t dash = line.find('-');
    if (path == line.npos || line.substr(path) != wanted || dash == line.npos) continue;
    const auto begin = Number(line, 16), limit = Number(line.substr(dash + 1), 16);
    if (begin.has_value() && limit.has_value() && *begin < *limit)
      ranges.push_back({*begin, *limit - *begin});
  }
  return ranges;
}

Result<ProcessUse> ReadProcessUse() {
  ProcessUse use;
  rusage times{};
  rlimit files{};
  if (::getrusage(RUSAGE_SELF, &times) != 0 || ::getrlimit(RLIMIT_NOFILE, &files) != 0)
    return Fail(Unavailable("the system does not say what this process uses"));
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  use.cpu_seconds = seconds(times.ru_utime) + seconds(times.ru_stime);
  use.max_fds = static_cast<int64_t>(files.rlim_cur);
  TESSERA_ASSIGN_OR_RETURN(use.open_fds, CountOpenFds());
  // Once: computed again it would wander with the clocks.
  static const Result<double> start = StartSeconds();
  TESSERA_ASSIGN_OR_RETURN(use.start_unix_seconds, start);
  return use;
}

}  // namespace tessera
