// SPDX-License-Identifier: Apache-2.0
#include "cli/download_bars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kMegabyte = 1'000'000;

hub::DownloadProgress Progress(std::vector<hub::DownloadProgress::File> files) {
  hub::DownloadProgress progress;
  progress.files = std::move(files);
  for (const auto& file : progress.files) {
    progress.done += file.done;
    progress.total += file.total;
  }
  return progress;
}

TEST(DownloadLines, HaveTheFilesOnTheirWayAndAll) {
  const auto progress = Progress({{"config.json", 10, 10},
                                  {"a.safetensors", 30 * kMegabyte, 40 * kMegabyte},
                                  {"b.safetensors", kMegabyte, 60 * kMegabyte},
                                  {"c.safetensors", 0, 5 * kMegabyte}});
  const auto lines = DownloadLines({progress, 0, 2.0 * kMegabyte, 37.0}, 120, 4);
  EXPECT_THAT(lines, ElementsAre(StartsWith("  b.safetensors ["), StartsWith("  a.safetensors ["),
                                 StartsWith("downloading b.safetensors and 3 more [")));
  EXPECT_THAT(lines[0], HasSubstr("1.0 MB of 60.0 MB"));
  EXPECT_THAT(lines[2], HasSubstr("31.0 MB of 105 MB, 2.0 MB/s, 37.0 s left"))
      << "rate and time are those that were given, not made here";
}

TEST(DownloadLines, AreFewAndFitTheTerminal) {
  std::vector<hub::DownloadProgress::File> files;
  const std::vector<std::string> names(30, std::string(150, 'n'));
  for (const std::string& name : names) files.push_back({name, 1, 2 * kMegabyte});
  const auto progress = Progress(std::move(files));
  for (const int columns : {200, 60, 20, 5}) {
    const auto lines = DownloadLines({progress, 0, 0, std::nullopt}, columns, 4);
    EXPECT_EQ(lines.size(), 5u);
    for (const std::string& line : lines) EXPECT_LT(line.size(), static_cast<size_t>(columns));
  }
}

TEST(DownloadLines, OfOneFileAreOne) {
  const auto progress = Progress({{"m.gguf", 1, 2 * kMegabyte}});
  EXPECT_THAT(DownloadLines({progress, 0, 0, std::nullopt}, 100, 4),
              ElementsAre(StartsWith("downloading m.gguf [")));
}

}  // namespace
}  // namespace tessera::cli
