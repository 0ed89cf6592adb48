// SPDX-License-Identifier: Apache-2.0
#include "cli/download_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/progress.h"
#include "cli/terminal.h"

namespace tessera::cli {
namespace {

constexpr Duration kRedrawEvery = std::chrono::milliseconds(100);
constexpr Duration kLineEvery = std::chrono::seconds(10);
constexpr size_t kMostFiles = 4;
constexpr std::string_view kEraseLine = "\r\033[K";

/// The file that says most about what this is, and how many more.
std::string TitleOf(const hub::DownloadProgress& progress) {
  const auto largest =
      std::max_element(progress.files.begin(), progress.files.end(),
                       [](const auto& a, const auto& b) { return a.total < b.total; });
  return progress.files.size() == 1
             ? fmt::format("downloading {}", largest->name)
             : fmt::format("downloading {} and {} more", largest->name, progress.files.size() - 1);
}

}  // namespace

std::vector<std::string> DownloadLines(const DownloadFigures& figures, int columns,
                                       size_t most_files) {
  const hub::DownloadProgress& progress = figures.progress;
  std::vector<const hub::DownloadProgress::File*> running;
  if (progress.files.size() > 1)  // Else the line for all says it.
    for (const auto& file : progress.files)
      if (file.done > 0 && file.done < file.total) running.push_back(&file);
  std::stable_sort(running.begin(), running.end(), [](const auto* a, const auto* b) {
    return a->total - a->done > b->total - b->done;
  });
  if (running.size() > most_files) running.resize(most_files);
  std::vector<std::string> lines;
  for (const auto* file : running)
    lines.push_back(
        ProgressLine(fmt::format("  {}", file->name), {file->done, file->total}, columns));
  lines.push_back(ProgressLine(
      TitleOf(progress),
      {progress.done, progress.total, figures.bytes_per_second, figures.seconds_left}, columns));
  return lines;
}

DownloadBars::~DownloadBars() {
  Erase();
}

void DownloadBars::Erase() {
  if (lines_ == 0) return;
  std::string text(kEraseLine);
  for (size_t i = 1; i < lines_; ++i) text += fmt::format("\033[A{}", kEraseLine);
  WriteStderr(text);
  lines_ = 0;
}

void DownloadBars::Show(const DownloadFigures& figures) {
  const hub::DownloadProgress& progress = figures.progress;
  if (progress.files.empty()) return;
  if (title_.empty()) first_done_ = progress.done;
  title_ = TitleOf(progress);
  done_ = progress.done;
  const TimePoint now = clock_.Now();
  if (!StderrIsTerminal()) {
    if (now - shown_.value_or(begin_) < kLineEvery) return;
    shown_ = now;
    return Note("{}: {}\n", title_,
                ProgressFigures({progress.done, progress.total, figures.bytes_per_second,
                                 figures.seconds_left}));
  }
  if (shown_.has_value() && now - *shown_ < kRedrawEvery) return;
  shown_ = now;
  Erase();
  const std::vector<std::string> lines = DownloadLines(figures, StderrColumns(), kMostFiles);
  std::string text(kEraseLine);
  for (size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" : "") + lines[i];
  WriteStderr(text);
  lines_ = lines.size();
}

void DownloadBars::Finish() {
  Erase();
  const double seconds = Seconds(clock_.Now() - begin_);
  const uint64_t come = done_ - std::min(first_done_, done_);
  const double rate = seconds > 0 ? static_cast<double>(come) / seconds : 0;
  Note("{}: {} in {} ({}/s)\n", title_, HumanBytes(come), HumanDuration(seconds),
       HumanBytes(static_cast<uint64_t>(rate)));
}

}  // namespace tessera::cli
