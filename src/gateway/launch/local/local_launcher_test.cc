// SPDX-License-Identifier: Apache-2.0
#include "gateway/launch/local/local_launcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "gateway/launch/conformance.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

using std::chrono::milliseconds;
using testing::TempDir;

/// A program in place of tessera: what it was given, then what the test asks of it.
std::filesystem::path Script(const TempDir& dir, std::string_view body) {
  const std::filesystem::path path = dir.path() / "worker.sh";
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

std::unique_ptr<LocalLauncher> Launcher(const TempDir& dir, std::string_view body) {
  auto launcher = LocalLauncher::Make(
      {.program = Script(dir, body), .log_dir = dir.path() / "logs", .lease = {}});
  EXPECT_TRUE(launcher.has_value());
  return *std::move(launcher);
}

WorkerOrder Order(std::string id = "wrk_1") {
  return {.worker_id = std::move(id),
          .endpoint_id = "end_1",
          .endpoint_name = "e",
          .generation = 3,
          .key = "secret",
          .arguments = {"MODEL"}};
}

Result<WorkerRecord> Start(LocalLauncher* launcher, const WorkerOrder& order = Order()) {
  auto record = launcher->Prepare(order);
  if (!record.has_value()) return record;
  if (const Status running = launcher->Run(order.worker_id); !running.ok()) return Fail(running);
  return record;
}

std::vector<WorkerExit> WaitForExit(LocalLauncher* launcher) {
  for (int i = 0; i < 1000; ++i) {
    if (auto exits = launcher->TakeExits(); !exits.empty()) return exits;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return {};
}

std::string WaitForLog(const LocalLauncher& launcher, std::string_view text) {
  for (int i = 0; i < 1000; ++i) {
    std::string log = launcher.ReadLog("wrk_1", 1 << 16).value_or("");
    if (log.find(text) != std::string::npos) return log;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return "not seen";
}

TEST(LocalLauncher, GivesAWorkerItsSocketKeyAndArguments) {
  const TempDir dir;
  const auto launcher = Launcher(dir,
                                 "echo args: $*; echo key: $TESSERA_API_KEY; ls -l /proc/$$/fd; "
                                 "echo end; sleep 100");
  const auto record = Start(launcher.get());
  ASSERT_TRUE(record.has_value()) << record.error().ToString();
  EXPECT_GT(record->port, 0);
  EXPECT_EQ(record->generation, 3);
  EXPECT_EQ(getpgid(static_cast<pid_t>(record->pid)), record->pid) << "a group of its own";
  const std::string log = WaitForLog(*launcher, "end\n");
  EXPECT_NE(log.find("args: serve MODEL --listen-fd 3"), std::string::npos) << log;
  EXPECT_NE(log.find("key: secret"), std::string::npos) << log;
  EXPECT_NE(log.find("3 -> socket:"), std::string::npos) << log;
  launcher->Kill("wrk_1");
  EXPECT_EQ(WaitForExit(launcher.get()).size(), 1u);
}

TEST(LocalLauncher, DrainEndsTheWholeGroup) {
  const TempDir dir;
  const auto launcher = Launcher(dir, "sleep 1000 & echo $!; wait");
  ASSERT_TRUE(Start(launcher.get()).has_value());
  const pid_t grandchild = std::stoi(WaitForLog(*launcher, "\n"));
  launcher->Drain("wrk_1");
  EXPECT_EQ(WaitForExit(launcher.get()).size(), 1u);
  for (int i = 0; i < 500 && StartTicks(grandchild).has_value(); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(StartTicks(grandchild).has_value());
}

TEST(LocalLauncher, WhatADeadWorkerStartedEndsWithIt) {
  const TempDir dir;
  const auto launcher = Launcher(dir, "sleep 1000 & echo $!; sleep 1000");
  const auto record = Start(launcher.get());
  ASSERT_TRUE(record.has_value());
  const pid_t grandchild = std::stoi(WaitForLog(*launcher, "\n"));
  ASSERT_EQ(kill(static_cast<pid_t>(record->pid), SIGKILL), 0) << "the leader alone";
  const auto exits = WaitForExit(launcher.get());
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].reason, "ended by signal 9");
  for (int i = 0; i < 500 && StartTicks(grandchild).has_value(); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(StartTicks(grandchild).has_value());
}

TEST(LocalLauncher, AProgramThatCannotRunIsAnErrorAtOnce) {
  const TempDir dir;
  auto launcher = LocalLauncher::Make(
      {.program = dir.path() / "absent", .log_dir = dir.path() / "logs", .lease = {}});
  const auto record = Start(launcher->get());
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().code(), Code::kNotFound);
  EXPECT_TRUE((*launcher)->TakeExits().empty());
}

TEST(LocalLauncher, AdoptsWhatLivesAndNothingElse) {
  const TempDir dir;
  WorkerRecord record;
  {
    const auto launcher = Launcher(dir, "echo up; sleep 1000");
    record = *Start(launcher.get());
    (void)WaitForLog(*launcher, "up\n");  // The shell has read its script, which changes below.
  }
  const auto launcher = Launcher(dir, "");
  WorkerRecord other = record;
  other.start_ticks += 1;  // The pid of somebody else who came later.
  EXPECT_FALSE(launcher->Adopt(other));
  ASSERT_TRUE(launcher->Adopt(record));
  EXPECT_TRUE(launcher->TakeExits().empty());
  launcher->Kill(record.id);
  EXPECT_EQ(waitpid(static_cast<pid_t>(record.pid), nullptr, 0), record.pid);
  EXPECT_EQ(WaitForExit(launcher.get()).size(), 1u);
  EXPECT_FALSE(launcher->Adopt(record));
}

TEST(LocalLauncher, WhatIsPreparedRunsNothingAndGoesWithItsMaker) {
  const TempDir dir;
  WorkerRecord record;
  {
    const auto launcher = Launcher(dir, "echo ran");
    record = *launcher->Prepare(Order());
    EXPECT_TRUE(StartTicks(record.pid).has_value()) << "it can be written down";
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_FALSE(StartTicks(record.pid).has_value());
  const auto launcher = Launcher(dir, "");
  EXPECT_EQ(launcher->ReadLog("wrk_1", 100).value_or("none"), "");
  EXPECT_FALSE(launcher->Run("wrk_1").ok());
}

TEST(LocalLauncher, ALogThatGrowsIsTrimmedWhileItsWorkerGoesOn) {
  const TempDir dir;
  const auto launcher = Launcher(
      dir, fmt::format("head -c {} /dev/zero; echo full; while :; do sleep 0.1; echo after; done",
                       kLogBytesMax + 1));
  ASSERT_TRUE(Start(launcher.get()).has_value());
  (void)WaitForLog(*launcher, "full\n");
  EXPECT_TRUE(launcher->TakeExits().empty());
  const auto bytes = [&](const char* name) {
    return std::filesystem::file_size(dir.path() / "logs" / name);
  };
  EXPECT_LT(bytes("wrk_1.log"), 1000u);
  EXPECT_EQ(bytes("wrk_1.log.1"), kLogBytesMax / 2);
  EXPECT_NE(WaitForLog(*launcher, "after\n").find("after\n"), std::string::npos);
  launcher->Kill("wrk_1");
  EXPECT_EQ(WaitForExit(launcher.get()).size(), 1u);
}

TEST(LocalLauncher, LogsOfTheNewestEndedWorkersAreKept) {
  const TempDir dir;
  const auto launcher = Launcher(dir, "exit 1");
  const auto old_log = [&](size_t number) {
    return dir.path() / "logs" / fmt::format("wrk_old{}.log", number);
  };
  for (size_t i = 0; i < kEndedLogsMax; ++i) {
    std::ofstream(old_log(i)) << "x";
    std::filesystem::last_write_time(
        old_log(i), std::filesystem::file_time_type::clock::now() - std::chrono::hours(i + 1));
  }
  std::ofstream(dir.path() / "logs" / "other.txt") << "not ours";
  ASSERT_TRUE(Start(launcher.get()).has_value());
  ASSERT_EQ(WaitForExit(launcher.get()).size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(old_log(kEndedLogsMax - 1))) << "one too many";
  EXPECT_TRUE(std::filesystem::exists(old_log(kEndedLogsMax - 2)));
  EXPECT_TRUE(launcher->ReadLog("wrk_1", 10).has_value());
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "logs" / "other.txt"));
}

/// Processes know their world by an environment variable, which all of their children inherit.
class LocalWorld final : public LauncherWorld {
 public:
  LocalWorld() : others_(Children()) { setenv(kTag, dir_.path().c_str(), 1); }
  ~LocalWorld() override { unsetenv(kTag); }

  std::unique_ptr<gateway::Launcher> Make(std::string_view body) override {
    // A program that runs is not written to.
    const auto program =
        dir_.path() / fmt::format("worker{}.sh", std::exchange(number_, number_ + 1));
    std::ofstream(program) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    auto launcher =
        LocalLauncher::Make({.program = program, .log_dir = dir_.path() / "logs", .lease = {}});
    EXPECT_TRUE(launcher.has_value());
    return launcher.has_value() ? *std::move(launcher) : nullptr;
  }
  std::vector<std::string> Leftovers() override {
    std::set<pid_t> left = Children();
    for (const pid_t other : others_) left.erase(other);
    for (const pid_t pid : Processes())
      if (IsOurs(pid)) left.insert(pid);
    std::vector<std::string> told;
    for (const pid_t pid : left) told.push_back(fmt::format("process {}", pid));
    return told;
  }
  size_t Running() override {
    return static_cast<size_t>(std::ranges::count_if(
        Processes(), [this](pid_t pid) { return getpgid(pid) == pid && IsOurs(pid); }));
  }

 private:
  static constexpr const char* kTag = "TESSERA_TEST_WORLD";

  /// All that live; zombies do not.
  static std::vector<pid_t> Processes() {
    std::vector<pid_t> pids;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      int pid = 0;
      (void)std::from_chars(name.data(), name.data() + name.size(), pid);
      if (pid > 0 && StartTicks(pid).has_value()) pids.push_back(pid);
    }
    return pids;
  }
  static std::string Read(pid_t pid, const char* what) {
    // Of a process that ends meanwhile reading fails, which an iterator over it would throw.
    std::ifstream file(fmt::format("/proc/{}/{}", pid, what), std::ios::binary);
    std::string text(1 << 16, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return text;
  }
  bool IsOurs(pid_t pid) const {
    return Read(pid, "environ").find(fmt::format("{}={}", kTag, dir_.path().string())) !=
           std::string::npos;
  }
  static pid_t ParentOf(pid_t pid) {
    const std::string status = Read(pid, "status");
    const size_t at = status.find("PPid:\t");
    return at == std::string::npos ? 0 : std::stoi(status.substr(at + 6));
  }

  static std::set<pid_t> Children() {
    std::set<pid_t> children;
    for (const pid_t pid : Processes())
      if (ParentOf(pid) == getpid()) children.insert(pid);
    return children;
  }

  const std::set<pid_t> others_;  // What the test program had started before.
  const TempDir dir_;
  int number_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Local, LauncherConformance,
                         ::testing::Values(LauncherUnderTest{
                             "local", [] { return std::make_unique<LocalWorld>(); }}),
                         LauncherUnderTest::Name);

TEST(StartTicks, OfThisProcessAndOfNone) {
  EXPECT_GT(StartTicks(getpid()).value_or(0), 0);
  EXPECT_FALSE(StartTicks(0x3fffffff).has_value());
}

}  // namespace
}  // namespace tessera::gateway
