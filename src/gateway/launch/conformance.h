// SPDX-License-Identifier: Apache-2.0
//
// What every launcher is held to: conformance_test.cc is one suite over launcher.h. A launcher's
// own test makes it run by
//
//   INSTANTIATE_TEST_SUITE_P(Mine, LauncherConformance, ::testing::Values(
//       LauncherUnderTest{"mine", [] { return std::make_unique<MyWorld>(); }}),
//       LauncherUnderTest::Name);
//
// Workers are shell programs here, so that a test says what a worker does.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/launch/launcher.h"

namespace tessera::gateway {

/// The place where a launcher starts its workers, for the time of one test.
class LauncherWorld {
 public:
  virtual ~LauncherWorld() = default;
  /// A launcher whose workers run `body` with sh in place of tessera; "$@" are their arguments.
  /// Each further one is that of a gateway that came back: of the same place and the same owner.
  virtual std::unique_ptr<Launcher> Make(std::string_view body) = 0;
  /// What there is of workers, running or not: names of processes and objects. Empty after all
  /// ended.
  virtual std::vector<std::string> Leftovers() = 0;
  /// Workers that run now, whoever started them.
  virtual size_t Running() = 0;
};

struct LauncherUnderTest {
  std::string name;
  std::function<std::unique_ptr<LauncherWorld>()> make;

  static std::string Name(const ::testing::TestParamInfo<LauncherUnderTest>& info) {
    return info.param.name;
  }
};

class LauncherConformance : public ::testing::TestWithParam<LauncherUnderTest> {
 protected:
  void SetUp() override { world = GetParam().make(); }
  /// Whatever a test did: when all workers were killed, nothing is left.
  void TearDown() override;

  /// A new gateway's launcher; the one there was goes, its workers stay.
  void Open(std::string_view body);
  static WorkerOrder Order(std::string id = "wrk_1", std::string endpoint = "end_1");
  /// Prepare and Run.
  WorkerRecord Start(const WorkerOrder& order = Order());
  /// Waits for the end of this worker.
  std::string WaitForExit(std::string_view id);
  /// The log once it holds `text`; else what it holds in the end.
  std::string WaitForLog(std::string_view text, std::string_view id = "wrk_1");
  bool IsToldToHaveEnded(std::string_view id);

  std::unique_ptr<LauncherWorld> world;
  std::unique_ptr<Launcher> launcher;
  std::vector<std::string> started;
  std::vector<WorkerExit> exits;  // All that were told.
};

}  // namespace tessera::gateway
