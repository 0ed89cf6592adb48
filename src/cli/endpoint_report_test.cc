// SPDX-License-Identifier: Apache-2.0
#include "cli/endpoint_report.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera::cli {
namespace {

json::Object Parsed(std::string_view text) {
  return json::Parse(text, {}, "test")->get_object();
}

constexpr std::string_view kRecord = R"({"name": "smol", "model_name": "m", "status": "READY",
  "ready": true, "status_reason": "1 worker ready", "warnings": ["a: no", "b: no"],
  "engine_options": {}, "spec": {"num_queued_items": 0, "created_by": "me",
  "created_at": "2026-12-01T00:00:00+00:00", "labels": {"team": "red"},
  "deployment_state": {"min_workers": 0, "max_workers": 4, "per_worker": 8,
  "available_workers": 1}}})";

TEST(EndpointTable, HasARowForEach) {
  EXPECT_EQ(EndpointTable({Parsed(kRecord)}, {}),
            "NAME  MODEL  STATUS  READY  WORKERS    WAITING  REASON\n"
            "smol  m      READY   yes    1 of 0..4        0  1 worker ready\n");
  EXPECT_EQ(EndpointTable({}, {}), "NAME  MODEL  STATUS  READY  WORKERS  WAITING  REASON\n");
}

TEST(EndpointTable, TakesAnyJson) {
  EXPECT_NE(EndpointTable({json::Value(3), Parsed(R"({"name": [1], "spec": 4})")}, {}).find("[1]"),
            std::string::npos);
}

TEST(EndpointFacts, LeavesOutWhatHasNoValue) {
  const std::string text = EndpointFacts(Parsed(kRecord), {});
  EXPECT_NE(text.find("name            smol\n"), std::string::npos) << text;
  EXPECT_NE(text.find("warnings        a: no\n                b: no\n"), std::string::npos) << text;
  EXPECT_NE(text.find("created         2026-12-01 00:00:00Z\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("options"), std::string::npos);
  EXPECT_EQ(text.find("checkpoint"), std::string::npos);
}

TEST(WorkerTable, HasTheColumnsThatRowsHave) {
  const auto rows = Parsed(R"({"w": [{"id": "wrk_1", "pid": 7, "state": "ready",
    "since": "2026-12-01T00:00:00+00:00", "running": 2}]})");
  EXPECT_EQ(WorkerTable(rows.at("w").get_array(), {}),
            "ID     PID  STATE  SINCE                 RUNNING\n"
            "wrk_1    7  ready  2026-12-01 00:00:00Z        2\n");
  EXPECT_EQ(WorkerTable({}, {}), "");
}

TEST(EventLine, SteersNoTerminal) {
  EXPECT_EQ(EventLine(Parsed(R"({"at": "2026-12-01T00:00:00+00:00", "kind": "created",
                                 "text": "a\u001bb", "actor": "me"})")),
            "2026-12-01 00:00:00Z  created           a\\x1bb (by me)\n");
}

TEST(WaitStateOf, IsReadyOnlyWhenACallIsAnswered) {
  EXPECT_EQ(WaitStateOf(Parsed(kRecord)), WaitState::kReady);
  EXPECT_EQ(WaitStateOf(Parsed(R"({"status": "READY", "ready": false})")), WaitState::kGoing);
  EXPECT_EQ(WaitStateOf(Parsed(R"({"status": "UPDATE_IN_PROGRESS", "ready": true})")),
            WaitState::kGoing);
  EXPECT_EQ(WaitStateOf(Parsed(R"({"status": "UPDATE_FAILED"})")), WaitState::kFailed);
  EXPECT_EQ(WaitStateOf({}), WaitState::kGoing);
}

TEST(WaitLine, IsABarWhereThereIsProgress) {
  const auto record = Parsed(R"({"name": "smol", "status_reason": "1 worker starting",
    "progress": {"stage": "compile", "percent": 50.0, "eta_seconds": 12}})");
  EXPECT_EQ(WaitLine(record, 80), "smol [############............] compile 50%, 12.0 s left");
  EXPECT_EQ(WaitLine(Parsed(R"({"name": "smol", "status_reason": "1 worker starting"})"), 80),
            "smol: 1 worker starting");
  for (int columns = 0; columns < 60; ++columns)
    EXPECT_LE(WaitLine(record, columns).size(), static_cast<size_t>(std::max(columns - 1, 0)));
}

}  // namespace
}  // namespace tessera::cli
