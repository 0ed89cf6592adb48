// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/terminal.h"

namespace tessera::cli {
namespace {

constexpr Duration kRedrawEvery = std::chrono::milliseconds(100);
constexpr Duration kLineEvery = std::chrono::seconds(10);
constexpr int kMostCells = 24;
constexpr int kFewestCells = 6;  // A shorter bar says less than the bytes beside it.
constexpr std::string_view kEraseLine = "\r\033[K";

double ShareOf(uint64_t done, uint64_t total) {
  return std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
}

uint64_t RateOf(uint64_t done, double seconds) {
  return seconds > 0 ? static_cast<uint64_t>(static_cast<double>(done) / seconds) : 0;
}

std::string TimeLeft(const std::optional<double>& seconds) {
  return seconds.has_value() ? HumanDuration(*seconds) : "?";
}

ProgressNumbers Average(uint64_t done, uint64_t total, double seconds) {
  return {done, total, static_cast<double>(RateOf(done, seconds)),
          SecondsLeft(done, total, seconds)};
}

}  // namespace

std::optional<double> SecondsLeft(uint64_t done, uint64_t total, double seconds) {
  if (done == 0 || total < done || seconds <= 0) return std::nullopt;
  return seconds * static_cast<double>(total - done) / static_cast<double>(done);
}

std::string ProgressBar(double share, int cells) {
  const int filled = std::clamp(static_cast<int>(share * cells), 0, cells);
  return fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", cells - filled);
}

std::string ProgressFigures(const ProgressNumbers& numbers) {
  const std::string bytes =
      fmt::format("{} of {}", HumanBytes(numbers.done), HumanBytes(numbers.total));
  if (!numbers.bytes_per_second.has_value()) return bytes;
  return fmt::format("{}, {}/s, {} left", bytes,
                     HumanBytes(static_cast<uint64_t>(*numbers.bytes_per_second)),
                     TimeLeft(numbers.seconds_left));
}

std::string ProgressLine(std::string_view title, uint64_t done, uint64_t total, double seconds,
                         int columns) {
  return ProgressLine(title, Average(done, total, seconds), columns);
}

std::string ProgressLine(std::string_view title, const ProgressNumbers& numbers, int columns) {
  const auto room = static_cast<size_t>(std::max(columns - 1, 0));
  const auto cut = [&](std::string_view line) { return std::string(line.substr(0, room)); };
  if (numbers.total == 0) return cut(title);
  const std::string text = fmt::format("{} {}", title, ProgressFigures(numbers));
  constexpr size_t kFrame = 3;  // "[] "
  if (text.size() + kFrame + kFewestCells <= room) {
    const auto cells = static_cast<int>(std::min<size_t>(kMostCells, room - text.size() - kFrame));
    return fmt::format("{} {}{}", title, ProgressBar(ShareOf(numbers.done, numbers.total), cells),
                       text.substr(title.size()));
  }
  if (text.size() <= room) return text;
  const int percent = static_cast<int>(ShareOf(numbers.done, numbers.total) * 100);
  const std::string brief =
      numbers.bytes_per_second.has_value()
          ? fmt::format("{} {}%, {} left", title, percent, TimeLeft(numbers.seconds_left))
          : fmt::format("{} {}%", title, percent);
  return brief.size() <= room ? brief : cut(fmt::format("{}%", percent));
}

Progress::Progress(std::string_view title, const Clock& clock)
    : title_(title), clock_(clock), begin_(clock.Now()) {}

Progress::~Progress() {
  if (has_bar_) WriteStderr(kEraseLine);
}

void Progress::Update(uint64_t done, uint64_t total) {
  done_ = done;
  const TimePoint now = clock_.Now();
  const double seconds = Seconds(now - begin_);
  if (!StderrIsTerminal()) {
    if (now - shown_.value_or(begin_) < kLineEvery || total == 0) return;
    Note("{}: {}\n", title_, ProgressFigures(Average(done, total, seconds)));
    shown_ = now;
    return;
  }
  if (shown_.has_value() && now - *shown_ < kRedrawEvery) return;
  shown_ = now;
  has_bar_ = true;
  Note("{}{}", kEraseLine, ProgressLine(title_, done, total, seconds, StderrColumns()));
  std::fflush(stderr);
}

void Progress::Finish() {
  if (has_bar_) WriteStderr(kEraseLine);
  has_bar_ = false;
  const double seconds = Seconds(clock_.Now() - begin_);
  if (done_ == 0) return Note("{}: {}\n", title_, HumanDuration(seconds));
  Note("{}: {} in {} ({}/s)\n", title_, HumanBytes(done_), HumanDuration(seconds),
       HumanBytes(RateOf(done_, seconds)));
}

}  // namespace tessera::cli
