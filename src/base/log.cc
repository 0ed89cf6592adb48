// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/sinks/sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

namespace tessera::log {
namespace {

std::atomic<Format> g_format{Format::kText};
std::atomic<Level> g_level{Level::warn};

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::warn:
      return "warn";
    case Level::critical:
      return "error";
    default: {
      const auto name = spdlog::level::to_string_view(level);
      return {name.data(), name.size()};
    }
  }
}

std::string Render(const Line& line) {
  return g_format.load(std::memory_order_relaxed) == Format::kJson ? JsonLine(line)
                                                                   : TextLine(line);
}

/// Descriptor 2, line by line.
class StderrWriter {
 public:
  void Write(std::string_view line, bool may_wait) {
    const std::lock_guard lock(mutex_);
    if (!may_wait && !HasRoom()) {
      ++lost_;
      lost_ever_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (const int64_t lost = std::exchange(lost_, 0); lost > 0) {
      const Field count{"lines", lost};
      WriteAll(Render({.time = std::chrono::system_clock::now(),
                       .level = "warn",
                       .component = "log",
                       .message = "lines were lost: nobody read this log",
                       .fields = std::span(&count, 1)}));
    }
    WriteAll(line);
  }
  uint64_t lost_ever() const { return lost_ever_.load(std::memory_order_relaxed); }

 private:
  /// A pipe that polls as writable takes a page without blocking.
  static bool HasRoom() {
    pollfd stderr_fd{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    return ::poll(&stderr_fd, 1, 0) != 0;
  }
  /// A log that cannot be written is no reason to stop.
  static void WriteAll(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }

  std::mutex mutex_;
  int64_t lost_ = 0;  // Since the last line that got through.
  std::atomic<uint64_t> lost_ever_{0};
};

StderrWriter& Writer() {
  // Never destroyed: threads may log until the very end.
  static auto& writer = *new StderrWriter;
  return writer;
}

void Write(Level level, const Line& line) {
  Writer().Write(Render(line), level >= Level::warn);
}

/// "net" of "net: accepting failed"; a sentence without such a beginning is the program's.
std::string_view ComponentOf(std::string_view message) {
  constexpr size_t kLongest = 16;
  const size_t colon = message.substr(0, kLongest).find(": ");
  if (colon == message.npos || colon == 0) return {};
  const std::string_view word = message.substr(0, colon);
  const bool is_word =
      std::ranges::all_of(word, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  return is_word ? word : std::string_view();
}

class LineSink : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& msg) override {
    std::string_view message(msg.payload.data(), msg.payload.size());
    const std::string_view component = ComponentOf(message);
    if (!component.empty()) message.remove_prefix(component.size() + 2);
    Write(msg.level, {.time = msg.time,
                      .level = LevelName(msg.level),
                      .component = component.empty() ? "tessera" : component,
                      .message = message,
                      .fields = {}});
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

}  // namespace

Status SetUp(std::string_view level, Format format) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  if (parsed == spdlog::level::off && level != "off")
    return InvalidArgument(fmt::format(
        "log level \"{}\" is unknown; expected trace, debug, info, warn, error or off", level));
  g_format = format;
  g_level = parsed;
  auto logger = std::make_shared<spdlog::logger>("tessera", std::make_shared<LineSink>());
  logger->set_level(parsed);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

Format CurrentFormat() {
  return g_format;
}

void Event(Level level, std::string_view component, std::string_view message,
           std::span<const Field> fields) {
  if (level < g_level.load(std::memory_order_relaxed)) return;
  Write(level, {.time = std::chrono::system_clock::now(),
                .level = LevelName(level),
                .component = component,
                .message = message,
                .fields = fields});
}

void Say(std::string_view component, std::string_view message) {
  Write(Level::warn, {.time = std::chrono::system_clock::now(),
                      .level = "info",
                      .component = component,
                      .message = message,
                      .fields = {}});
}

uint64_t LostLines() {
  return Writer().lost_ever();
}

}  // namespace tessera::log
