// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_record.h"

#include <gtest/gtest.h>

#include "gateway/batch/batch_json.h"

namespace tessera::gateway {
namespace {

BatchRecord Full() {
  BatchRecord record;
  record.id = "batch-1";
  record.owner = "me";
  record.form = BatchForm::kLines;
  record.status = BatchStatus::kFailed;
  record.reason = "why";
  record.is_cancelling = record.is_expired = record.wants_tokens = true;
  record.model = "m";
  record.endpoint = "e";
  record.endpoint_body = {{"name", "batch"}};
  record.model_config = {{"model", "m"}};
  record.metadata = {{"a", "b"}};
  record.warnings = {"w"};
  record.data_parallelism = 3;
  record.max_runtime_s = 60;
  record.priority = "high";
  record.input_path = "in";
  record.output_path = "out";
  record.output_file_id = "file-1";
  record.error_file_id = "file-2";
  record.target = "/v1/completions";
  record.rows = 10;
  record.completed = 7;
  record.failed = 2;
  record.created_at = 100;
  record.started_at = 200;
  record.completed_at = 300;
  return record;
}

TEST(BatchRecord, ReadsBackAsItWasWritten) {
  EXPECT_EQ(*ReadBatch(WriteBatch(Full())), Full());
  EXPECT_EQ(*ReadBatch(WriteBatch(BatchRecord())), BatchRecord());
}

TEST(BatchRecord, WhatIsNoneIsDataLoss) {
  const json::Object stored = WriteBatch(Full());
  for (const auto& member : stored) {
    json::Object damaged = stored;
    damaged[member.key()] = json::Array{1};
    if (member.key() == "warnings") damaged[member.key()] = 1;
    EXPECT_EQ(StatusOf(ReadBatch(damaged)).code(), Code::kDataLoss) << std::string(member.key());
  }
  json::Object unknown = stored;
  unknown["status"] = "sleeping";
  EXPECT_EQ(StatusOf(ReadBatch(unknown)).code(), Code::kDataLoss);
}

TEST(BatchRecord, PrioritiesAreWordsOrNumbers) {
  EXPECT_EQ(*BatchRank(""), 0);
  EXPECT_EQ(*BatchRank("low"), -1);
  EXPECT_EQ(*BatchRank("high"), 1);
  EXPECT_EQ(*BatchRank("1000"), 1000);
  EXPECT_EQ(*BatchRank("-1000"), -1000);
  for (const char* bad : {"1001", "-1001", "urgent", "1.5", " 1", "+1", "HIGH"})
    EXPECT_FALSE(BatchRank(bad).has_value()) << bad;
}

TEST(BatchRecord, ExpiresFromItsStartOn) {
  BatchRecord record = Full();
  EXPECT_EQ(record.expires_at(), 260);
  record.started_at = 0;
  EXPECT_EQ(record.expires_at(), 160);
}

TEST(BatchJson, HoldsWhatClientsRead) {
  const json::Object job = BatchJobJson(Full());
  EXPECT_EQ(job.at("job_id"), "batch-1");
  EXPECT_EQ(job.at("created_at"), "1970-01-01T00:01:40+00:00");
  EXPECT_EQ(job.at("counts"), (json::Object{{"total", 10}, {"completed", 7}, {"failed", 2}}));
  EXPECT_EQ(job.at("progress"), 0.9);
  EXPECT_EQ(BatchJobJson(BatchRecord()).at("completed_at"), nullptr);
  const json::Object batch = OpenAiBatchJson(Full());
  EXPECT_EQ(batch.at("status"), "expired");
  EXPECT_EQ(batch.at("expired_at"), 300);
  EXPECT_EQ(batch.at("failed_at"), nullptr);
  EXPECT_EQ(batch.at("output_file_id"), "file-1");
}

TEST(BatchJson, OpenAiKnowsOtherStates) {
  BatchRecord record = Full();
  record.is_expired = record.is_cancelling = false;
  record.status = BatchStatus::kQueued;
  EXPECT_EQ(OpenAiBatchJson(record).at("status"), "validating");
  EXPECT_EQ(OpenAiBatchJson(record).at("output_file_id"), nullptr);
  record.status = BatchStatus::kRunning;
  EXPECT_EQ(OpenAiBatchJson(record).at("status"), "in_progress");
  record.is_cancelling = true;
  EXPECT_EQ(OpenAiBatchJson(record).at("status"), "cancelling");
  record.status = BatchStatus::kCancelled;
  EXPECT_EQ(OpenAiBatchJson(record).at("status"), "cancelled");
}

}  // namespace
}  // namespace tessera::gateway
