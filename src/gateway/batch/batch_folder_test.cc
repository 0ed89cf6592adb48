// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "gateway/batch/batch_output.h"
#include "gateway/batch/batch_rows.h"
#include "gateway/limits.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;
using testing::ReadAll;
using testing::TempDir;
using Use = BatchFolder::Use;

class BatchFolderTest : public ::testing::Test {
 protected:
  BatchFolderTest() {
    const auto maker = *BatchFolder::Maker::Make(path_);
    for (const char* id : {"a", "b", "c"}) {
      BatchRow row;
      row.target = "/v1/completions";
      row.custom_id = id;
      EXPECT_TRUE(maker->Add(WriteRow(row)).ok());
    }
    EXPECT_TRUE(maker->Finish().ok());
    maker->Keep();
  }
  static RowResult Done(size_t row, const char* text) {
    return {.row = row, .status = 200, .body = json::Object{{"text", text}}};
  }
  static RowResult Failed(size_t row) { return {.row = row, .status = 400, .error = "bad\nrow"}; }

  const TempDir dir_;
  const fs::path path_ = dir_.path() / "batch-1";
};

TEST_F(BatchFolderTest, ResultsComeInAnyOrderAndAreFoundAgain) {
  {
    const auto folder = *BatchFolder::Open(path_, Use::kAppend);
    EXPECT_EQ(folder->rows(), 3u);
    ASSERT_TRUE(folder->Append(Done(2, "third")).ok());
    ASSERT_TRUE(folder->Append(Failed(0)).ok());
  }
  const auto folder = *BatchFolder::Open(path_, Use::kAppend);
  EXPECT_EQ(folder->completed(), 1);
  EXPECT_EQ(folder->failed(), 1);
  EXPECT_FALSE(folder->IsDone(1));
  EXPECT_EQ(folder->ResultOf(2)->body, (json::Object{{"text", "third"}}));
  EXPECT_EQ(folder->ResultOf(0)->error, "bad\nrow");
  EXPECT_EQ(folder->ResultOf(0)->status, 400);
  EXPECT_EQ(ReadRow(*folder->Row(1))->custom_id, "b");
}

TEST_F(BatchFolderTest, HalfAResultAtTheEndRunsAgain) {
  { ASSERT_TRUE((*BatchFolder::Open(path_, Use::kAppend))->Append(Done(0, "whole")).ok()); }
  std::ofstream(path_ / "results.jsonl", std::ios::app) << R"({"row":1,"status":200,"bo)";
  const auto size = fs::file_size(path_ / "results.jsonl");
  EXPECT_FALSE((*BatchFolder::Open(path_, Use::kRead))->IsDone(1));
  EXPECT_EQ(fs::file_size(path_ / "results.jsonl"), size) << "a reader changes nothing";
  const auto folder = *BatchFolder::Open(path_, Use::kAppend);
  EXPECT_FALSE(folder->IsDone(1));
  ASSERT_TRUE(folder->Append(Done(1, "again")).ok());
  EXPECT_EQ((*BatchFolder::Open(path_, Use::kRead))->completed(), 2);
}

TEST_F(BatchFolderTest, DamagedResultsAreNotTaken) {
  for (const char* line : {"garbage", R"({"row":3,"status":200,"body":{}})",
                           R"({"row":-1,"status":200,"body":{}})", R"({"row":0,"status":200})",
                           R"({"row":0,"status":200,"body":{})"
                           "\n"
                           R"({"row":0})"}) {
    std::ofstream(path_ / "results.jsonl") << line << "\n";
    EXPECT_EQ(StatusOf(BatchFolder::Open(path_, Use::kAppend)).code(), Code::kDataLoss) << line;
  }
  std::ofstream(path_ / "results.jsonl") << R"({"row":0,"status":200,"body":{}})"
                                            "\n"
                                         << R"({"row":0,"status":200,"body":{}})"
                                            "\n";
  EXPECT_EQ(StatusOf(BatchFolder::Open(path_, Use::kAppend)).code(), Code::kDataLoss) << "twice";
}

TEST_F(BatchFolderTest, AFullDiskLeavesNoHalfResult) {
  const auto folder = *BatchFolder::Open(path_, Use::kAppend);
  ASSERT_TRUE(folder->Append(Done(0, "kept")).ok());
  const std::string before = ReadAll(path_ / "results.jsonl");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{before.size() + 10, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Status full = folder->Append(Done(1, "too much for the disk"));
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(full.ok());
  EXPECT_EQ(ReadAll(path_ / "results.jsonl"), before);
  EXPECT_FALSE(folder->IsDone(1));
  EXPECT_TRUE(folder->Append(Done(1, "later")).ok());
}

TEST_F(BatchFolderTest, AMakerThatIsNotKeptLeavesNothing) {
  const fs::path other = dir_.path() / "batch-2";
  {
    const auto maker = *BatchFolder::Maker::Make(other);
    ASSERT_TRUE(maker->Add("{}").ok() && maker->Finish().ok());
  }
  EXPECT_FALSE(fs::exists(other));
}

// --- Outputs of it -------------------------------------------------------------------------

TEST_F(BatchFolderTest, OutputsAreListsInTheOrderOfRows) {
  const auto folder = *BatchFolder::Open(path_, Use::kAppend);
  ASSERT_TRUE(folder->Append(Done(2, "third")).ok());
  ASSERT_TRUE(folder->Append(Failed(1)).ok());
  ASSERT_TRUE(folder->Append(Done(0, "first")).ok());
  BatchRecord batch;
  batch.output_path = "out.json";
  const BatchRoot root = *BatchRoot::Make(dir_.path());
  ASSERT_TRUE(WriteBatchOutput(batch, *folder, root, nullptr).ok());
  const json::Value list = *json::Parse(ReadAll(dir_.path() / "out.json"), {}, "out");
  ASSERT_EQ(list.as_array().size(), 3u);
  EXPECT_EQ(list.at(0).at("text"), "first");
  EXPECT_EQ(list.at(1).at("text"), "") << "a reader of completions finds its members";
  EXPECT_EQ(list.at(1).at("error").at("message"), "bad\nrow");
  EXPECT_EQ(list.at(2).at("text"), "third");
}

TEST_F(BatchFolderTest, OpenAiGetsTwoFilesAndEachOnce) {
  const auto folder = *BatchFolder::Open(path_, Use::kAppend);
  ASSERT_TRUE(folder->Append(Done(2, "third")).ok());
  ASSERT_TRUE(folder->Append(Failed(1)).ok());
  const auto store = *Store::Open(dir_.path() / "state");
  const auto files = *FileStore::Open(store.get(), {});
  BatchRecord batch;
  batch.id = "batch-1";
  batch.owner = "me";
  batch.form = BatchForm::kLines;
  batch.output_file_id = FileStore::NewFileId();
  batch.error_file_id = FileStore::NewFileId();
  for (int twice = 0; twice < 2; ++twice)
    ASSERT_TRUE(WriteBatchOutput(batch, *folder, BatchRoot(), files.get()).ok());
  ASSERT_EQ(files->List("me")->size(), 2u);
  const auto line = [&](const std::string& id) {
    return *json::Parse(ReadAll(files->PathOf(**files->Find("me", id))), {}, "line");
  };
  const json::Value output = line(batch.output_file_id), error = line(batch.error_file_id);
  EXPECT_EQ(output.at("custom_id"), "c");
  EXPECT_EQ(output.at("response").at("body").at("text"), "third");
  EXPECT_EQ(output.at("error"), nullptr);
  EXPECT_EQ(error.at("custom_id"), "b");
  EXPECT_EQ(error.at("response").at("status_code"), 400);
  EXPECT_EQ(error.at("response").at("body").at("error").at("message"), "bad\nrow");
}

}  // namespace
}  // namespace tessera::gateway
