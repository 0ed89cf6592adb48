// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

using testing::TempDir;
using Kind = RowVerdict::Kind;

class BatchRunTest : public ::testing::Test {
 protected:
  BatchRunTest() {
    const auto maker = *BatchFolder::Maker::Make(path_);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(maker->Add("{}").ok());
    EXPECT_TRUE(maker->Finish().ok());
    maker->Keep();
    Open();
  }
  void Open() {
    run_.reset();
    run_ = std::make_unique<BatchRun>(*BatchFolder::Open(path_, BatchFolder::Use::kAppend));
  }
  /// A row that goes to a worker.
  std::optional<RowOutcome> Take() {
    const auto next = run_->TakeRow(now_);
    if (!next.has_value()) return std::nullopt;
    run_->NoteCall(next->first, next->second, [this] { ++cancelled_; });
    return RowOutcome{.row = next->first, .call = next->second};
  }
  void Settle(const RowOutcome& outcome, Kind kind) {
    RowVerdict verdict{.kind = kind, .why = "trouble"};
    verdict.result = {.row = outcome.row, .status = 200, .body = json::Object()};
    run_->Settle(outcome, std::move(verdict), now_);
    EXPECT_TRUE(run_->WriteDown().ok());
  }

  const TempDir dir_;
  const std::filesystem::path path_ = dir_.path() / "batch";
  std::unique_ptr<BatchRun> run_;
  TimePoint now_{};
  int cancelled_ = 0;
};

TEST_F(BatchRunTest, EveryRowIsTakenOnceAndOnlyWhatIsNotDoneIsTakenAgain) {
  std::set<size_t> taken;
  std::optional<RowOutcome> last;
  while (const auto outcome = Take()) {
    EXPECT_TRUE(taken.insert(outcome->row).second);
    last = outcome;
    if (outcome->row % 2 == 0) Settle(*outcome, Kind::kDone);
  }
  EXPECT_EQ(taken.size(), 4u);
  EXPECT_EQ(run_->under_way(), 2u);
  Open();  // As after a crash.
  EXPECT_EQ(cancelled_, 2);
  EXPECT_EQ(Take()->row, 1u);
  EXPECT_EQ(Take()->row, 3u);
  EXPECT_FALSE(Take().has_value());
}

TEST_F(BatchRunTest, ARowOfAFailingWorkerIsTriedAgainAfterAPauseAndNotForEver) {
  auto outcome = *Take();
  ASSERT_EQ(outcome.row, 0u);
  for (int rest = 0; rest < 3; ++rest) Settle(*Take(), Kind::kDone);
  int tries = 1;
  while (!run_->IsDone()) {
    Settle(outcome, Kind::kTryAgain);
    EXPECT_EQ(run_->trouble(), "trouble");
    if (run_->IsDone()) break;
    EXPECT_FALSE(Take().has_value()) << "not at once";
    now_ += std::chrono::seconds(60);
    outcome = *Take();
    EXPECT_EQ(outcome.row, 0u);
    ++tries;
  }
  EXPECT_EQ(tries, kRowAttemptsMax);
  EXPECT_EQ(run_->folder().failed(), 1);
  EXPECT_TRUE(run_->folder().ResultOf(0)->error.contains("trouble"));
}

TEST_F(BatchRunTest, WaitingForAWorkerIsNoFailure) {
  for (int i = 0; i < 10 * kRowAttemptsMax; ++i) {
    const auto outcome = *Take();
    EXPECT_EQ(outcome.row, 0u) << "its turn comes before that of rows that were not taken yet";
    Settle(outcome, Kind::kWait);
    now_ += std::chrono::seconds(1);
  }
  EXPECT_EQ(run_->folder().failed(), 0);
}

TEST_F(BatchRunTest, OutcomesOfCallsThatAreOverAreDropped) {
  const auto first = *Take();
  run_->CancelCalls();
  EXPECT_EQ(cancelled_, 1);
  Settle(first, Kind::kDone);
  EXPECT_EQ(run_->folder().completed(), 0);
  const auto again = *Take();
  EXPECT_EQ(again.row, first.row) << "it is open again";
  Settle(first, Kind::kDone);
  EXPECT_EQ(run_->under_way(), 1u) << "not the call that runs now";
  Settle(again, Kind::kDone);
  Settle(again, Kind::kDone);
  EXPECT_EQ(run_->folder().completed(), 1);
}

TEST(JudgeRow, TellsWorkersFromRows) {
  const BatchRecord batch = [] {
    BatchRecord made;
    made.form = BatchForm::kRequests;
    made.model = "m";
    return made;
  }();
  const auto judge = [&](int status, const char* body, Status end = {}) {
    RowOutcome outcome{.row = 7, .status = std::move(end), .http_status = status, .body = body};
    return JudgeRow(outcome, batch);
  };
  EXPECT_EQ(judge(0, "", DeadlineExceeded("none was ready")).kind, Kind::kWait);
  EXPECT_EQ(judge(0, "", ResourceExhausted("too many wait")).kind, Kind::kWait);
  EXPECT_EQ(judge(0, "", Unavailable("refused")).kind, Kind::kTryAgain);
  EXPECT_EQ(judge(200, "{", Unavailable("reset")).kind, Kind::kTryAgain);
  EXPECT_EQ(judge(200, "{").kind, Kind::kTryAgain);
  for (const int status : {408, 429, 500, 503})
    EXPECT_EQ(judge(status, "{}").kind, Kind::kTryAgain) << status;
  const RowVerdict bad = judge(400, R"({"error": {"message": "max_tokens: too many"}})");
  EXPECT_EQ(bad.kind, Kind::kDone);
  EXPECT_EQ(bad.result.error, "max_tokens: too many");
  EXPECT_EQ(bad.result.status, 400);
  EXPECT_TRUE(judge(404, "").result.has_failed());
  const RowVerdict good = judge(200, R"({"object": "x", "model": "batch-1"})");
  EXPECT_FALSE(good.result.has_failed());
  EXPECT_EQ(good.result.row, 7u);
  EXPECT_EQ(good.result.body, (json::Object{{"object", "x"}, {"model", "m"}}));
}

TEST(JudgeRow, PromptsGetCompletionOutputs) {
  BatchRecord batch;
  batch.form = BatchForm::kPrompts;
  const char* body =
      R"({"choices": [{"text": "hi", "logprobs": {"tokens": ["h", "i"], "token_logprobs": [-1, -2]}}],
          "usage": {"prompt_tokens": 3}})";
  const RowOutcome outcome{.http_status = 200, .body = body};
  EXPECT_EQ(JudgeRow(outcome, batch).result.body, (json::Object{{"text", "hi"},
                                                                {"num_prompt_tokens", 3},
                                                                {"num_completion_tokens", 2},
                                                                {"tokens", nullptr}}));
  batch.wants_tokens = true;
  EXPECT_EQ(JudgeRow(outcome, batch).result.body.at("tokens").at(1).at("token"), "i");
}

}  // namespace
}  // namespace tessera::gateway
