// SPDX-License-Identifier: Apache-2.0
//
// The store when its disk is full or its file is damaged: what was acknowledged stays, what was not
// is refused, and nothing makes it worse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "gateway/store/database.h"
#include "gateway/store/store.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

using tessera::testing::ReadAll;
using tessera::testing::TempDir;
using ::testing::HasSubstr;

EndpointRecord Endpoint(int number) {
  EndpointRecord record{.id = NewId("end_"), .owner = "me"};
  record.spec.name = "e" + std::to_string(number);
  record.spec.model_name = "m";
  record.spec.metadata = {{"filler", std::string(2000, 'x')}};
  return record;
}

EventRecord Created() {
  return {.endpoint_id = "", .kind = "created", .text = "", .actor = "me"};
}

/// Inserts until it fails: how many went in, and why no more did.
std::pair<int, Status> Fill(Store* store) {
  for (int i = 0; i < 100000; ++i)
    if (Status status = store->InsertEndpoint(Endpoint(i), Created()); !status.ok())
      return {i, status};
  return {0, Internal("it never was full")};
}

TEST(StoreOnAFullDisk, RefusesAndKeepsWhatItHas) {
  const TempDir dir;
  int stored = 0;
  {
    auto database = OpenSqlite(dir.path() / kDatabaseFile);
    ASSERT_TRUE(database.has_value());
    ASSERT_TRUE((*database)->Execute("PRAGMA max_page_count = 60").ok());
    auto store = Store::Open(dir.path(), *std::move(database));
    ASSERT_TRUE(store.has_value()) << store.error().ToString();
    const auto [count, status] = Fill(store->get());
    stored = count;
    EXPECT_GT(stored, 3);
    EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
    EXPECT_THAT(status.ToString(), HasSubstr("free disk space"));
    // The same again, and what is there is read, changed and removed as before.
    EXPECT_EQ((*store)->InsertEndpoint(Endpoint(-1), Created()).code(), Code::kResourceExhausted);
    const auto kept = (*store)->LoadEndpoints();
    ASSERT_TRUE(kept.has_value());
    EXPECT_EQ(static_cast<int>(kept->size()), stored);
    EXPECT_TRUE((*store)->RemoveEndpoint(kept->front().id).ok());
    EXPECT_TRUE((*store)->InsertEndpoint(Endpoint(-2), Created()).ok()) << "the room that one left";
  }
  auto store = Store::Open(dir.path());
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  EXPECT_EQ(static_cast<int>((*store)->LoadEndpoints()->size()), stored);
}

// The file may not grow, as on a disk without room: the system refuses the write itself.
TEST(StoreOnAFullDisk, AWriteThatTheSystemRefusesLosesNothing) {
  const TempDir dir;
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    auto store = Store::Open(dir.path());
    const rlimit limit{.rlim_cur = 400000, .rlim_max = 400000};
    if (!store.has_value() || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    const auto [count, status] = Fill(store->get());
    if (write(fds[1], &count, sizeof count) != sizeof count) _exit(3);
    const auto kept = (*store)->LoadEndpoints();
    _exit(status.code() == Code::kResourceExhausted && kept.has_value() &&
                  static_cast<int>(kept->size()) == count
              ? 0
              : 1);
  }
  int stored = -1, ended = -1;
  ASSERT_EQ(read(fds[0], &stored, sizeof stored), static_cast<ssize_t>(sizeof stored));
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << ended;
  close(fds[0]);
  close(fds[1]);
  auto store = Store::Open(dir.path());
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  EXPECT_GT(stored, 3);
  EXPECT_EQ(static_cast<int>((*store)->LoadEndpoints()->size()), stored);
}

TEST(ADamagedStore, IsRefusedInOneSentenceAndLeftAsItIs) {
  const TempDir dir;
  const std::filesystem::path file = dir.path() / kDatabaseFile;
  {
    auto store = Store::Open(dir.path());
    ASSERT_TRUE(store.has_value());
    for (int i = 0; i < 60; ++i) ASSERT_TRUE((*store)->InsertEndpoint(Endpoint(i), Created()).ok());
  }
  const std::string whole = ReadAll(file);
  ASSERT_GT(whole.size(), size_t{100000});
  // The head; the middle of its pages; cut off.
  for (const int kind : {0, 1, 2}) {
    std::string damaged = whole;
    if (kind == 0) damaged.replace(0, 64, 64, '?');
    if (kind == 1) damaged.replace(whole.size() / 4, whole.size() / 2, whole.size() / 2, '?');
    if (kind == 2) damaged.resize(whole.size() / 2);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
    const auto store = Store::Open(dir.path());
    ASSERT_FALSE(store.has_value()) << kind;
    EXPECT_EQ(store.error().code(), Code::kDataLoss) << store.error().ToString();
    EXPECT_THAT(store.error().ToString(), HasSubstr(file.string()));
    EXPECT_THAT(store.error().ToString(), HasSubstr("put back a copy"));
    EXPECT_EQ(store.error().ToString().find('\n'), std::string::npos);
    EXPECT_EQ(ReadAll(file), damaged) << "left as it was";
  }
  std::ofstream(file, std::ios::binary | std::ios::trunc) << whole;
  const auto store = Store::Open(dir.path());
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  EXPECT_EQ((*store)->LoadEndpoints()->size(), 60u);
}

}  // namespace
}  // namespace tessera::gateway
