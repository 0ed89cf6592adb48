// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/file_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "base/bytes.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;
using testing::ReadAll;
using testing::TempDir;

struct Opened {
  explicit Opened(const fs::path& dir, const FileLimits& limits = {})
      : store(*Store::Open(dir)), files(*FileStore::Open(store.get(), limits)) {}

  ApiResult<FileRecord> Put(const std::string& owner, std::string_view bytes) {
    auto incoming = files->Begin(owner);
    if (!incoming.has_value()) return std::unexpected(incoming.error());
    if (auto done = (*incoming)->Append(bytes); !done.has_value())
      return std::unexpected(done.error());
    return (*incoming)->Publish("a.txt", "test");
  }

  std::unique_ptr<Store> store;
  std::unique_ptr<FileStore> files;
};

size_t Entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

/// Writes of the process fail beyond this size of a file.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(FileStore, KeepsFilesAcrossOpening) {
  const TempDir dir;
  FileRecord record;
  {
    Opened opened(dir.path());
    record = *opened.Put("me", "hello");
  }
  Opened opened(dir.path());
  EXPECT_EQ(**opened.files->Find("me", record.id), record);
  EXPECT_EQ(record.bytes, 5);
  EXPECT_EQ(record.purpose, "test");
  EXPECT_EQ(record.sha256, Sha256Hex(AsBytes(std::string_view("hello"))));
  EXPECT_EQ(ReadAll(opened.files->PathOf(record)), "hello");
}

TEST(FileStore, OwnersSeeTheirOwnFilesOnly) {
  const TempDir dir;
  Opened opened(dir.path());
  const FileRecord record = *opened.Put("me", "secret");
  EXPECT_EQ(*opened.files->Find("you", record.id), std::nullopt);
  EXPECT_TRUE(opened.files->List("you")->empty());
  EXPECT_FALSE(*opened.files->Remove("you", record.id));
  EXPECT_TRUE(*opened.files->Remove("me", record.id));
  EXPECT_FALSE(*opened.files->Remove("me", record.id));
  EXPECT_FALSE(fs::exists(opened.files->PathOf(record)));
}

TEST(FileStore, NothingIsLeftOfAFileThatWasNotPublished) {
  const TempDir dir;
  Opened opened(dir.path(), {.owner_bytes_max = 10});
  {
    const auto incoming = *opened.files->Begin("me");
    EXPECT_TRUE(incoming->Append("0123456789").has_value());
    EXPECT_TRUE(opened.files->List("me")->empty());
    EXPECT_EQ(Entries(dir.path() / "files" / "incoming"), 1u);
  }
  EXPECT_EQ(Entries(dir.path() / "files" / "incoming"), 0u);
  EXPECT_TRUE(opened.Put("me", "0123456789").has_value()) << "its room was given back";
}

TEST(FileStore, WhatAKilledGatewayLeftGoesAtTheNextStart) {
  const TempDir dir;
  { const Opened opened(dir.path()); }
  std::ofstream(dir.path() / "files" / "incoming" / "file-half") << "half";
  std::ofstream(dir.path() / "files" / "file-unrecorded") << "whole, but nobody was told";
  const Opened opened(dir.path());
  EXPECT_EQ(Entries(dir.path() / "files"), 1u) << "the folder of what is incoming";
  EXPECT_EQ(Entries(dir.path() / "files" / "incoming"), 0u);
}

TEST(FileStore, LimitsHoldAtTheirEdges) {
  const TempDir dir;
  const FileLimits limits{.file_bytes_max = 6, .owner_bytes_max = 10, .owner_files_max = 3};
  Opened opened(dir.path(), limits);
  EXPECT_EQ(opened.Put("me", "1234567").error().status, 413) << "one file";
  const FileRecord first = *opened.Put("me", "123456");
  EXPECT_EQ(opened.Put("me", "12345").error().status, 413) << "all of them";
  ASSERT_TRUE(opened.Put("me", "1234").has_value());
  ASSERT_TRUE(opened.Put("me", "").has_value());
  EXPECT_EQ(opened.Put("me", "").error().status, 413) << "their number";
  EXPECT_TRUE(opened.Put("you", "123456").has_value()) << "of each owner";
  ASSERT_TRUE(*opened.files->Remove("me", first.id));
  EXPECT_TRUE(opened.Put("me", "123456").has_value()) << "and what is gone does not count";
}

TEST(FileStore, LimitsCountWhatWasThereBefore) {
  const TempDir dir;
  { ASSERT_TRUE(Opened(dir.path()).Put("me", "123456").has_value()); }
  Opened opened(dir.path(), {.owner_bytes_max = 10});
  EXPECT_EQ(opened.Put("me", "12345").error().status, 413);
  EXPECT_TRUE(opened.Put("me", "1234").has_value());
}

TEST(FileStore, AFullDiskRefusesAndKeepsWhatIsThere) {
  const TempDir dir;
  Opened opened(dir.path());
  const FileRecord kept = *opened.Put("me", "kept");
  {
    const FileSizeLimit full(1u << 20);
    const auto refused = opened.Put("me", std::string(2u << 20, 'x'));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().status, 507);
  }
  EXPECT_EQ(opened.files->List("me")->size(), 1u);
  EXPECT_EQ(ReadAll(opened.files->PathOf(kept)), "kept");
  EXPECT_EQ(Entries(dir.path() / "files" / "incoming"), 0u);
  EXPECT_TRUE(opened.Put("me", std::string(2u << 20, 'x')).has_value()) << "once there is room";
}

}  // namespace
}  // namespace tessera::gateway
