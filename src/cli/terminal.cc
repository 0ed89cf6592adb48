// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/log.h"
#include "formats/printable.h"

namespace tessera::cli {

std::string HumanBytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value, value < 99.5 ? 1 : 0, kUnits[unit]);
}

std::string HumanDuration(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

bool StderrIsTerminal() {
  return ::isatty(STDERR_FILENO) == 1 && log::CurrentFormat() == log::Format::kText;
}
bool StdoutIsTerminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

int StderrColumns() {
  winsize size{};
  constexpr int kUsual = 80;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

void ReserveStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is `fd`.
    (void)::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

Status FlushStdout() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return Unavailable(fmt::format("the output could not be written to stdout{}{}",
                                 errno != 0 ? ": " : "", errno != 0 ? std::strerror(errno) : ""));
}

Status WriteStdout(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);  // FlushStdout sees its failure.
  return FlushStdout();
}

void WriteStderr(std::string_view text) {
  if (log::CurrentFormat() == log::Format::kJson) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    return log::Say("cli", text);
  }
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

void WriteError(std::string_view text) {
  constexpr size_t kMostBytes = 2000;
  Note("tessera: {}\n", formats::Printable(text, kMostBytes));
}

}  // namespace tessera::cli
