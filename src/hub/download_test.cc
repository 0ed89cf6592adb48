// SPDX-License-Identifier: Apache-2.0
//
// Download against a scripted server: what is asked for, what is not asked for again, and what
// every kind of failure leaves behind.
#include "hub/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "hub/file_lock.h"
#include "hub/journal.h"
#include "hub/partial_file.h"
#include "support/fixtures.h"

namespace tessera::hub {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A server of one file. `fail` decides what becomes of the n-th request.
struct Server {
  std::string content;
  std::mutex mutex;
  std::vector<ByteRange> asked;
  enum class Act : uint8_t {
    kServe,
    kBreakHalfway,
    kUnavailable,
    kForbidden,
    kWrongByte,
    kNoRange
  };
  std::function<Act(size_t)> act = [](size_t) { return Act::kServe; };

  Result<HttpHead> Answer(const HttpRequest& request, const HttpSink& sink) {
    ByteRange range = request.range.value_or(ByteRange{0, content.size()});
    size_t number = 0;
    {
      const std::lock_guard lock(mutex);
      number = asked.size();
      asked.push_back(range);
    }
    const Act what = act(number);
    HttpHead head;
    head.url = request.url;
    if (what == Act::kUnavailable) return Fail(Unavailable("no connection"));
    head.status = what == Act::kForbidden ? 403 : 206;
    if (what == Act::kForbidden) return head;
    if (what == Act::kNoRange || !request.range) {
      head.status = 200;
      range = {0, content.size()};
    } else {
      head.headers = {{"content-range", "bytes " + std::to_string(range.begin) + "-" +
                                            std::to_string(range.end - 1) + "/" +
                                            std::to_string(content.size())}};
    }
    if (sink.on_head) TESSERA_RETURN_IF_ERROR(sink.on_head(head));
    std::string body = content.substr(range.begin, range.size());
    if (what == Act::kWrongByte) body.front() ^= 1;
    if (what == Act::kBreakHalfway) body.resize(body.size() / 2);
    for (size_t at = 0; at < body.size(); at += 10'000)
      TESSERA_RETURN_IF_ERROR(sink.on_body(AsBytes(std::string_view(body).substr(at, 10'000))));
    if (what == Act::kBreakHalfway) return Fail(Unavailable("connection lost"));
    return head;
  }
};

class ServerHttp final : public Http {
 public:
  explicit ServerHttp(Server& server) : server_(server) {}
  Result<HttpHead> OneHop(const HttpRequest& request, const HttpSink& sink) override {
    return server_.Answer(request, sink);
  }

 private:
  Server& server_;
};

class DownloadTest : public ::testing::Test {
 protected:
  DownloadTest() {
    settings_.retry_wait = settings_.retry_wait_max = std::chrono::milliseconds(1);
    settings_.patience = std::chrono::milliseconds(200);
    server_.content.resize(9'000'001);
    for (size_t i = 0; i < server_.content.size(); ++i)
      server_.content[i] = static_cast<char>(i * 31 + i / 7919);
    file_.name = "weights";
    file_.url = "https://hub/weights";
    file_.bytes = server_.content.size();
    file_.sha256 = Sha256Hex(AsBytes(server_.content));
    file_.target = dir_.path() / "blobs/weights";
    file_.lock = dir_.path() / "locks/weights.lock";
  }

  Result<DownloadReport> Run() {
    return Download(std::span(&file_, 1), settings_,
                    [this]() -> Result<std::unique_ptr<Http>> {
                      return std::unique_ptr<Http>(new ServerHttp(server_));
                    },
                    {{}, [this](const std::string& note) { notes_.push_back(note); }});
  }
  bool IsWhole() {
    const auto text = ReadFile(file_.target, 1 << 30);
    return text.has_value() && *text == server_.content;
  }
  std::filesystem::path Part() const { return file_.target.string() + ".tessera.incomplete"; }

  testing::TempDir dir_;
  Settings settings_;
  Server server_;
  DownloadFile file_;
  std::vector<std::string> notes_;
};

TEST_F(DownloadTest, FetchesEveryByteOnce) {
  const auto report = Run();
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(report->fetched, server_.content.size());
  EXPECT_FALSE(std::filesystem::exists(Part()));
  server_.asked.clear();
  EXPECT_EQ(Run()->fetched, 0u);
  EXPECT_THAT(server_.asked, IsEmpty());
}

TEST_F(DownloadTest, GoesOnWhereATransferBroke) {
  server_.act = [](size_t n) { return n < 6 ? Server::Act::kBreakHalfway : Server::Act::kServe; };
  const auto report = Run();
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(report->fetched, server_.content.size()) << "no byte came twice";
  EXPECT_GE(report->retries, 6u);
}

TEST_F(DownloadTest, AServerWithoutRangesWillDo) {
  server_.act = [](size_t) { return Server::Act::kNoRange; };
  ASSERT_TRUE(Run().has_value());
  EXPECT_TRUE(IsWhole());
}

TEST_F(DownloadTest, GivesUpWhenNothingArrivesAndTheNextCallGoesOn) {
  server_.act = [](size_t n) { return n < 2 ? Server::Act::kServe : Server::Act::kUnavailable; };
  settings_.connections = 1;
  const auto report = Run();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), Code::kUnavailable);
  EXPECT_THAT(report.error().message(), HasSubstr("the next try goes on where it stopped"));
  EXPECT_FALSE(std::filesystem::exists(file_.target));
  uint64_t asked_before = 0;
  for (size_t i = 0; i < 2; ++i) asked_before += server_.asked[i].size();
  server_.act = [](size_t) { return Server::Act::kServe; };
  EXPECT_EQ(Run()->fetched, server_.content.size() - asked_before);
  EXPECT_TRUE(IsWhole());
}

TEST_F(DownloadTest, WrongBytesAreFetchedOnceMoreAndNeverPublished) {
  server_.act = [](size_t n) { return n == 0 ? Server::Act::kWrongByte : Server::Act::kServe; };
  ASSERT_TRUE(Run().has_value());
  EXPECT_TRUE(IsWhole());
  std::filesystem::remove(file_.target);
  server_.act = [](size_t) { return Server::Act::kWrongByte; };
  const auto report = Run();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), Code::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(file_.target));
  server_.act = [](size_t) { return Server::Act::kServe; };
  ASSERT_TRUE(Run().has_value()) << "what was wrong is not kept";
  EXPECT_TRUE(IsWhole());
}

TEST_F(DownloadTest, ARefusalEndsItAtOnce) {
  server_.act = [](size_t) { return Server::Act::kForbidden; };
  file_.explain = [](const HttpHead&) { return PermissionDenied("it is gated"); };
  const auto report = Run();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().message(), "it is gated");
}

TEST_F(DownloadTest, SmallFilesAreKnownByTheirGitName) {
  server_.content = "{}";
  file_.bytes = 2;
  file_.sha256.clear();
  file_.git_sha1 = "9e26dfeeb6e641a33dae4961196235bdb965b21b";  // git hash-object
  ASSERT_TRUE(Run().has_value());
  EXPECT_TRUE(IsWhole());
}

TEST_F(DownloadTest, AnEmptyFileNeedsNoRequest) {
  server_.content.clear();
  file_.bytes = 0;
  file_.sha256 = Sha256Hex({});
  ASSERT_TRUE(Run().has_value());
  EXPECT_TRUE(IsWhole());
  EXPECT_THAT(server_.asked, IsEmpty());
}

TEST_F(DownloadTest, AsksForRoomBeforeTheFirstByte) {
  file_.bytes = uint64_t{1} << 43;
  const auto report = Run();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(report.error().message(), HasSubstr("--hf-cache-dir"));
  EXPECT_THAT(server_.asked, IsEmpty());
}

TEST_F(DownloadTest, WhatAJournalNamesIsNotFetched) {
  std::filesystem::create_directories(file_.target.parent_path());
  {
    const auto part = PartialFile::Open(file_.target, file_.bytes, file_.sha256);
    ASSERT_TRUE(part.has_value());
    ASSERT_TRUE(
        (*part)->Write(100, AsBytes(std::string_view(server_.content).substr(100, 5000))).ok());
  }
  const auto report = Run();
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->fetched, server_.content.size() - 5000);
  for (const ByteRange& range : server_.asked) EXPECT_TRUE(range.end <= 100 || range.begin >= 5100);
  EXPECT_TRUE(IsWhole());
}

TEST_F(DownloadTest, AJournalOfOtherBytesOrOfALostFileTellsNothing) {
  std::filesystem::create_directories(file_.target.parent_path());
  {
    const auto part = PartialFile::Open(file_.target, file_.bytes, "another hash");
    ASSERT_TRUE((*part)->Write(0, AsBytes("xxxx")).ok());
  }
  EXPECT_EQ(Run()->fetched, server_.content.size());
  EXPECT_TRUE(IsWhole());
  std::filesystem::remove(file_.target);
  {
    const auto part = PartialFile::Open(file_.target, file_.bytes, file_.sha256);
    ASSERT_TRUE((*part)->Write(0, AsBytes("xxxx")).ok());
  }
  ASSERT_TRUE(std::filesystem::remove(Part()));
  EXPECT_EQ(Run()->fetched, server_.content.size());
  EXPECT_TRUE(IsWhole());
}

TEST_F(DownloadTest, ALinkInThePlaceOfOurFileIsNotFollowed) {
  std::filesystem::create_directories(file_.target.parent_path());
  const auto victim = dir_.path() / "victim";
  ASSERT_TRUE(WriteFileAtomic(victim, "precious").ok());
  std::filesystem::create_symlink(victim, Part());
  EXPECT_FALSE(Run().has_value());
  EXPECT_EQ(*ReadFile(victim, 100), "precious");
}

TEST_F(DownloadTest, WaitsForAnotherHolderOfTheLock) {
  auto lock = FileLock::TryLock(file_.lock);
  ASSERT_TRUE(lock.has_value() && lock->has_value());
  EXPECT_FALSE(FileLock::TryLock(file_.lock)->has_value());
  std::filesystem::create_directories(file_.target.parent_path());
  std::thread other([&] {
    // The other process ends its download while we wait.
    ASSERT_TRUE(WriteFileAtomic(file_.target, server_.content).ok());
    lock->reset();
  });
  const auto report = Run();
  other.join();
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_TRUE(IsWhole());
}

TEST_F(DownloadTest, FilesOfTheSameBytesAreFetchedOnce) {
  DownloadFile twin = file_;
  twin.name = "twin";
  const auto get = [&]() -> Result<DownloadReport> {
    const std::vector<DownloadFile> files = {file_, twin};
    return Download(files, settings_,
                    [this]() -> Result<std::unique_ptr<Http>> {
                      return std::unique_ptr<Http>(new ServerHttp(server_));
                    },
                    {});
  };
  const auto report = get();
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(report->fetched, server_.content.size());
  EXPECT_THAT(report->new_files, ::testing::UnorderedElementsAre("weights", "twin"));
  twin.bytes = 5;
  EXPECT_EQ(get().error().code(), Code::kInvalidArgument) << "two sizes of one hash";
}

TEST_F(DownloadTest, GoesOnWithWhatHuggingfaceHubLeft) {
  std::filesystem::create_directories(file_.target.parent_path());
  const auto left = [&](std::string_view name, uint64_t bytes) {
    const auto path = file_.target.string() + std::string(name);
    EXPECT_TRUE(WriteFileAtomic(path, server_.content.substr(0, bytes)).ok());
    return path;
  };
  left(".0a1b2c3d.incomplete", 1'000'000);
  const std::string longest = left(".incomplete", 4'000'000);
  const auto report = Run();
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(report->fetched, server_.content.size() - 4'000'000);
  EXPECT_THAT(notes_, ::testing::ElementsAre(HasSubstr("4.0 MB that huggingface_hub had left")));
  EXPECT_FALSE(std::filesystem::exists(longest));
}

TEST_F(DownloadTest, WhatHuggingfaceHubLeftIsVerifiedLikeAllElse) {
  std::filesystem::create_directories(file_.target.parent_path());
  const std::string path = file_.target.string() + ".incomplete";
  std::string wrong = server_.content.substr(0, 4'000'000);
  wrong[123] ^= 1;
  ASSERT_TRUE(WriteFileAtomic(path, wrong).ok());
  ASSERT_TRUE(Run().has_value());
  EXPECT_TRUE(IsWhole());
  // A hole is nothing: only what stands before it counts.
  std::filesystem::remove(file_.target);
  ASSERT_TRUE(WriteFileAtomic(path, server_.content.substr(0, 1 << 20)).ok());
  std::filesystem::resize_file(path, 8 << 20);
  EXPECT_EQ(Run()->fetched, server_.content.size() - (1 << 20));
  // Nor is more than the file has, or what nobody announced a hash of.
  std::filesystem::remove(file_.target);
  ASSERT_TRUE(WriteFileAtomic(path, server_.content + "x").ok());
  EXPECT_EQ(Run()->fetched, server_.content.size());
  std::filesystem::remove(file_.target);
  file_.sha256.clear();
  ASSERT_TRUE(WriteFileAtomic(path, wrong).ok());
  EXPECT_EQ(Run()->fetched, server_.content.size());
  EXPECT_TRUE(IsWhole());
}

TEST_F(DownloadTest, ALockFileThatSomebodyRemovesLocksNobodyOut) {
  auto held = FileLock::TryLock(file_.lock);
  ASSERT_TRUE(held.has_value() && held->has_value());
  std::filesystem::remove(file_.lock);
  // The name is free again, and a new file there is another lock: as for huggingface_hub's own.
  EXPECT_TRUE(FileLock::TryLock(file_.lock)->has_value());
  EXPECT_TRUE(std::filesystem::exists(file_.lock));
}

}  // namespace
}  // namespace tessera::hub
