// SPDX-License-Identifier: Apache-2.0
//
// The suite of conformance.h. Nothing here knows which launcher it tests.
#include "gateway/launch/conformance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tessera::gateway {

using std::chrono::milliseconds;

namespace {

constexpr auto kPatience = std::chrono::seconds(60);

template <class Check>
bool Eventually(Check check) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!check()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

/// Ends by itself when it is told to: as the first process of a container it has to ask for that.
constexpr std::string_view kStay = "trap 'exit 0' TERM; echo up; sleep 1000 & wait";
/// Prints its arguments one a line between brackets, then stays.
constexpr std::string_view kShowArguments =
    "trap 'exit 0' TERM; printf '[%s]\\n' \"$@\"; echo shown; sleep 1000 & wait";

}  // namespace

void LauncherConformance::Open(std::string_view body) {
  launcher.reset();
  launcher = world->Make(body);
  ASSERT_NE(launcher, nullptr);
}

WorkerOrder LauncherConformance::Order(std::string id, std::string endpoint) {
  return {.worker_id = std::move(id),
          .endpoint_id = std::move(endpoint),
          .endpoint_name = "e",
          .generation = 3,
          .key = "se-cr$et",
          .arguments = {"MODEL"}};
}

WorkerRecord LauncherConformance::Start(const WorkerOrder& order) {
  started.push_back(order.worker_id);
  auto record = launcher->Prepare(order);
  EXPECT_TRUE(record.has_value()) << StatusOf(record).ToString();
  if (!record.has_value()) return {};
  const Status running = launcher->Run(order.worker_id);
  EXPECT_TRUE(running.ok()) << running.ToString();
  return *std::move(record);
}

bool LauncherConformance::IsToldToHaveEnded(std::string_view id) {
  for (WorkerExit& exit : launcher->TakeExits()) exits.push_back(std::move(exit));
  return std::ranges::find(exits, id, &WorkerExit::worker_id) != exits.end();
}

std::string LauncherConformance::WaitForExit(std::string_view id) {
  if (!Eventually([&] { return IsToldToHaveEnded(id); })) return "it did not end";
  return std::ranges::find(exits, id, &WorkerExit::worker_id)->reason;
}

std::string LauncherConformance::WaitForLog(std::string_view text, std::string_view id) {
  std::string log;
  (void)Eventually([&] {
    log = launcher->ReadLog(id, 1 << 16).value_or("");
    return log.find(text) != std::string::npos;
  });
  return log;
}

void LauncherConformance::TearDown() {
  for (const std::string& id : started) launcher->Kill(id);
  std::vector<std::string> left;
  EXPECT_TRUE(Eventually([&] {
    (void)launcher->TakeExits();
    left = world->Leftovers();
    return left.empty();
  })) << fmt::format("{}", fmt::join(left, ", "));
  launcher.reset();
}

TEST_P(LauncherConformance, GivesAWorkerItsArgumentsAndItsKeyApart) {
  Open("echo \"args: $*\"; echo \"key: $TESSERA_API_KEY.\"; sleep 1000 & wait");
  const WorkerRecord record = Start();
  EXPECT_EQ(record.id, "wrk_1");
  EXPECT_EQ(record.endpoint_id, "end_1");
  EXPECT_EQ(record.generation, 3);
  EXPECT_EQ(record.key, "se-cr$et");
  EXPECT_GT(record.started_at, 0);
  const std::string log = WaitForLog("key: se-cr$et.");
  const size_t arguments = log.find("args: serve MODEL ");
  ASSERT_NE(arguments, std::string::npos) << log;
  EXPECT_EQ(log.substr(arguments, log.find('\n', arguments) - arguments).find("se-cr$et"),
            std::string::npos)
      << "arguments are for all to see";
}

TEST_P(LauncherConformance, TellsWhereAWorkerIs) {
  Open(kStay);
  const WorkerRecord record = Start();
  if (record.port > 0) {
    EXPECT_FALSE(record.host.empty());
    return;
  }
  int told = 0;
  ASSERT_TRUE(Eventually([&] {
    for (const WorkerNews& news : launcher->TakeNews()) {
      EXPECT_EQ(news.worker_id, "wrk_1");
      if (news.port == 0) continue;
      ++told;
      EXPECT_FALSE(news.host.empty());
      EXPECT_FALSE(news.pod.empty());
    }
    return told > 0;
  }));
  (void)WaitForLog("up\n");
  for (const WorkerNews& news : launcher->TakeNews()) EXPECT_EQ(news.port, 0) << "told once";
}

TEST_P(LauncherConformance, WhatIsPreparedRunsNothing) {
  Open(kStay);
  ASSERT_TRUE(launcher->Prepare(Order()).has_value());
  EXPECT_EQ(world->Running(), 0u);
  launcher.reset();
  EXPECT_TRUE(Eventually([&] { return world->Leftovers().empty(); }));
  Open(kStay);
  EXPECT_FALSE(launcher->Run("wrk_1").ok());
  EXPECT_EQ(world->Running(), 0u);
}

TEST_P(LauncherConformance, RunIsOfWhatWasPreparedAndOnce) {
  Open(kStay);
  EXPECT_EQ(launcher->Run("wrk_none").code(), Code::kNotFound);
  (void)Start();
  EXPECT_EQ(launcher->Run("wrk_1").code(), Code::kNotFound);
}

TEST_P(LauncherConformance, TellsOnceWhyAWorkerEnded) {
  Open("echo first; echo the model is not there >&2; exit 3");
  (void)Start();
  EXPECT_EQ(WaitForExit("wrk_1"), "exit status 3: the model is not there");
  EXPECT_TRUE(launcher->TakeExits().empty());
  EXPECT_TRUE(world->Leftovers().empty()) << "nothing is left when it is told";
  EXPECT_NE(launcher->ReadLog("wrk_1", 4096).value_or("none").find("the model is not there"),
            std::string::npos)
      << "its last words outlive it";
}

TEST_P(LauncherConformance, TheReasonIsOneBoundedLine) {
  Open("head -c 3000 /dev/zero | tr '\\0' x; exit 4");
  (void)Start();
  const std::string reason = WaitForExit("wrk_1");
  EXPECT_TRUE(reason.starts_with("exit status 4: xxx")) << reason;
  EXPECT_LE(reason.size(), 600u);
}

TEST_P(LauncherConformance, AWorkerThatEndsAtOnceIsNotStartedAgain) {
  Open("exit 0");
  (void)Start();
  EXPECT_EQ(WaitForExit("wrk_1"), "it ended");
  EXPECT_EQ(world->Running(), 0u);
}

TEST_P(LauncherConformance, WorkersOfOneEndpointLiveApart) {
  Open(kStay);
  (void)Start(Order("wrk_1"));
  (void)Start(Order("wrk_2"));
  (void)Start(Order("wrk_3", "end_2"));
  for (const std::string_view id : {"wrk_1", "wrk_2", "wrk_3"})
    EXPECT_EQ(WaitForLog("up\n", id), "up\n");
  EXPECT_EQ(world->Running(), 3u);
  launcher->Kill("wrk_1");
  EXPECT_EQ(WaitForExit("wrk_1"), "killed");
  EXPECT_EQ(world->Running(), 2u);
  EXPECT_FALSE(IsToldToHaveEnded("wrk_2"));
  EXPECT_FALSE(IsToldToHaveEnded("wrk_3"));
}

TEST_P(LauncherConformance, DrainLetsAWorkerEndByItself) {
  Open("trap 'echo told; sleep 1; exit 0' TERM; echo up; while :; do sleep 0.1; done");
  (void)Start();
  ASSERT_EQ(WaitForLog("up\n"), "up\n");
  launcher->Drain("wrk_1");
  EXPECT_NE(WaitForLog("told\n").find("told\n"), std::string::npos);
  EXPECT_FALSE(IsToldToHaveEnded("wrk_1"));
  EXPECT_EQ(WaitForExit("wrk_1"), "it ended");
}

TEST_P(LauncherConformance, KillIsFinalAlsoForWhoHearsNothing) {
  Open("trap '' TERM; echo up; while :; do sleep 0.1; done");
  (void)Start();
  ASSERT_EQ(WaitForLog("up\n"), "up\n");
  launcher->Drain("wrk_1");
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(world->Running(), 1u) << "it may take its time";
  launcher->Kill("wrk_1");
  EXPECT_EQ(WaitForExit("wrk_1"), "killed");
  EXPECT_EQ(world->Running(), 0u);
}

TEST_P(LauncherConformance, AStartThatNeverServesCanBeKilledAtAnyTime) {
  Open(kStay);
  (void)Start();  // Killed before it printed anything.
  launcher->Kill("wrk_1");
  EXPECT_EQ(WaitForExit("wrk_1"), "killed");
}

TEST_P(LauncherConformance, ANewLauncherAdoptsWhatLives) {
  Open(kStay);
  const WorkerRecord record = Start();
  ASSERT_EQ(WaitForLog("up\n"), "up\n");
  Open("exit 1");
  EXPECT_EQ(world->Running(), 1u) << "workers outlive their launcher";
  ASSERT_TRUE(launcher->Adopt(record));
  EXPECT_EQ(WaitForLog("up\n"), "up\n") << "and their logs are found";
  EXPECT_FALSE(IsToldToHaveEnded("wrk_1"));
  launcher->Drain("wrk_1");
  EXPECT_EQ(WaitForExit("wrk_1"), "it ended");
}

TEST_P(LauncherConformance, AdoptionOfWhatIsGoneSaysSo) {
  Open(kStay);
  const WorkerRecord record = Start();
  ASSERT_EQ(WaitForLog("up\n"), "up\n");
  launcher->Kill("wrk_1");
  EXPECT_EQ(WaitForExit("wrk_1"), "killed");
  exits.clear();
  Open(kStay);
  if (launcher->Adopt(record)) {
    EXPECT_NE(WaitForExit("wrk_1"), "it did not end");
  }
  EXPECT_EQ(world->Running(), 0u) << "killed is killed";
}

TEST_P(LauncherConformance, UnknownWorkersAreNobody) {
  Open(kStay);
  launcher->Drain("wrk_none");
  launcher->Kill("../x");
  EXPECT_TRUE(launcher->TakeExits().empty());
  EXPECT_EQ(launcher->ReadLog("wrk_none", 10).error().code(), Code::kNotFound);
  EXPECT_EQ(launcher->ReadLog("../../../../etc/passwd", 10).error().code(), Code::kNotFound);
}

TEST_P(LauncherConformance, ALogIsReadFromItsEndAndBounded) {
  Open(
      "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); done; echo last; "
      "sleep 1000 & wait");
  (void)Start();
  ASSERT_NE(WaitForLog("last\n").find("last\n"), std::string::npos);
  for (const uint64_t bytes : {1, 2, 5, 6, 4096}) {
    const std::string log = launcher->ReadLog("wrk_1", bytes).value_or("");
    EXPECT_EQ(log.size(), bytes);
    const std::string end = "line 19999\nlast\n";
    EXPECT_TRUE(log.ends_with(end.substr(end.size() - std::min<size_t>(bytes, end.size())))) << log;
  }
  EXPECT_EQ(launcher->ReadLog("wrk_1", 0).value_or("none"), "");
}

TEST_P(LauncherConformance, HostileArgumentsArriveAsTheyAre) {
  Open(kShowArguments);
  WorkerOrder order = Order();
  order.arguments = {"a b", "",        "$(TESSERA_API_KEY)",       "$$(HOME)",   "${HOME}", "`id`",
                     "\"'", "--x=$(A", "\xd0\xbf\xf0\x9f\x92\xa5", "two\nlines", "%s%n",    "\\"};
  std::string expected = "[serve]\n";
  for (const std::string& argument : order.arguments) expected += "[" + argument + "]\n";
  (void)Start(order);
  EXPECT_EQ(WaitForLog("shown\n").substr(0, expected.size()), expected);
}

TEST_P(LauncherConformance, NamesOfEndpointsAreOnlyCarried) {
  Open(kStay);
  const std::vector<std::string> names = {
      "",          "../../etc/passwd",     "a\nb: c",          "$(reboot)", "'; rm -rf /",
      "{\"a\":1}", std::string(5000, 'n'), "\xd0\xb0\xd0\xb0", "a/b?c=d#e", "-rf"};
  for (size_t i = 0; i < names.size(); ++i) {
    WorkerOrder order = Order(fmt::format("wrk_{}", i));
    order.endpoint_name = names[i];
    (void)Start(order);
  }
  for (const std::string& id : started) EXPECT_EQ(WaitForLog("up\n", id), "up\n") << id;
}

TEST_P(LauncherConformance, IdsThatAreNoneAreRefused) {
  Open(kStay);
  for (const std::string& id :
       {std::string(), std::string("../x"), std::string("a b"), std::string("a/b"),
        std::string("a\0b", 3), std::string("\xc3\xa4"), std::string(kWorkerIdBytesMax + 1, 'a')}) {
    const auto made = launcher->Prepare(Order(id));
    ASSERT_FALSE(made.has_value()) << id;
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument);
  }
  for (const size_t bytes : {kWorkerIdBytesMax - 1, kWorkerIdBytesMax})
    (void)Start(Order(std::string(bytes, 'W')));
  WorkerOrder order = Order();
  for (const std::string& argument : {std::string("a\0b", 3), std::string("\xff")}) {
    order.arguments = {argument};
    EXPECT_EQ(StatusOf(launcher->Prepare(order)).code(), Code::kInvalidArgument);
  }
}

TEST_P(LauncherConformance, ManyWorkersComeAndGo) {
  Open(kStay);
  for (int i = 0; i < 6; ++i) (void)Start(Order(fmt::format("wrk_{}", i)));
  for (int i = 0; i < 6; i += 2) launcher->Kill(fmt::format("wrk_{}", i));
  for (int i = 1; i < 6; i += 2) launcher->Drain(fmt::format("wrk_{}", i));
  for (const std::string& id : started) EXPECT_NE(WaitForExit(id), "it did not end") << id;
  EXPECT_EQ(exits.size(), 6u);
}

}  // namespace tessera::gateway
