// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/upload.h"

#include <gtest/gtest.h>

#include "gateway/limits.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

using testing::ReadAll;
using testing::TempDir;

class UploadTest : public ::testing::Test {
 protected:
  static std::string Part(std::string_view parameters, std::string_view bytes) {
    return "--b\r\nContent-Disposition: form-data; " + std::string(parameters) + "\r\n\r\n" +
           std::string(bytes) + "\r\n";
  }
  /// The answer, or the error that refuses it at once or at its end.
  ApiResult<json::Object> Send(std::string_view form) {
    Upload upload(files_.get(), "me", "b");
    if (const auto error = upload.OnBytes(form))
      return std::unexpected(ApiError{.status = error->status, .text = error->message});
    return upload.Finish();
  }

  const TempDir dir_;
  const std::unique_ptr<Store> store_ = *Store::Open(dir_.path());
  const std::unique_ptr<FileStore> files_ =
      *FileStore::Open(store_.get(), {.file_bytes_max = 1000});
};

TEST_F(UploadTest, AFormBecomesAFile) {
  const auto answer = Send(Part("name=purpose", "batch") +
                           Part("name=file; filename=\"/tmp/t/rows.jsonl\"", "{}\n") + "--b--");
  ASSERT_TRUE(answer.has_value()) << answer.error().text;
  EXPECT_EQ(answer->at("filename").as_string(), "rows.jsonl");
  EXPECT_EQ(answer->at("purpose").as_string(), "batch");
  EXPECT_EQ(answer->at("size").to_number<int64_t>(), 3);
  const auto record = *files_->Find("me", answer->at("id").as_string());
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(ReadAll(files_->PathOf(*record)), "{}\n");
  EXPECT_FALSE(answer->contains("warnings"));
}

TEST_F(UploadTest, FieldsThatNobodyKnowsAreNamed) {
  const auto answer = Send(Part("name=\"expires_after[anchor]\"", "created_at") +
                           Part("name=file; filename=a", "x") + "--b--");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->at("warnings").as_array().at(0).as_string(),
            "expires_after[anchor]: no such field, ignored");
}

TEST_F(UploadTest, WhatIsRefusedLeavesNothing) {
  const std::string file = Part("name=file; filename=a", "x");
  const struct {
    std::string form;
    int status;
  } cases[] = {
      {Part("name=other", "x") + "--b--", 422},
      {file + file + "--b--", 400},
      {file, 400},  // Cut off.
      {file + Part("name=purpose", "two words") + "--b--", 400},
      {file + Part("name=purpose", std::string(kFilePurposeBytesMax + 1, 'p')) + "--b--", 400},
      {file + Part("name=o", std::string(kFormFieldBytesMax + 1, 'p')) + "--b--", 413},
      {Part("name=file; filename=a", std::string(1001, 'x')) + "--b--", 413},
      {Part("name=file; filename=\"a%0Ab\"", "x") + "--b--", 400},
      {Part("name=file; filename=" + std::string(kFileNameBytesMax + 1, 'n'), "x") + "--b--", 400},
      {"no form at all" + std::string(kMultipartPreambleBytesMax, '.') + "......", 400},
  };
  for (const auto& [form, status] : cases) {
    const auto answer = Send(form);
    ASSERT_FALSE(answer.has_value()) << form.substr(0, 100);
    EXPECT_EQ(answer.error().status, status) << form.substr(0, 100) << answer.error().text;
    EXPECT_TRUE(files_->List("me")->empty()) << form.substr(0, 100);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path() / "files" / "incoming"));
}

TEST_F(UploadTest, LimitsAdmitTheirEdges) {
  EXPECT_TRUE(Send(Part("name=file; filename=" + std::string(kFileNameBytesMax, 'n'),
                        std::string(1000, 'x')) +
                   Part("name=purpose", std::string(kFilePurposeBytesMax, 'p')) +
                   Part("name=o", std::string(kFormFieldBytesMax, 'p')) + "--b--")
                  .has_value());
}

TEST(BaseName, IsTheLastPartOfAnyPath) {
  EXPECT_EQ(*BaseName("a.txt"), "a.txt");
  EXPECT_EQ(*BaseName("../../etc/passwd"), "passwd");
  EXPECT_EQ(*BaseName("C:\\Users\\me\\a.txt"), "a.txt");
  EXPECT_EQ(*BaseName(""), "file");
  EXPECT_EQ(*BaseName("folder/"), "file");
}

}  // namespace
}  // namespace tessera::gateway
