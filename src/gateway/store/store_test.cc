// SPDX-License-Identifier: Apache-2.0
#include "gateway/store/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>

#include "gateway/limits.h"
#include "gateway/spec/read_spec.h"
#include "gateway/store/postgres_database.h"
#include "support/fixtures.h"
#include "support/postgres_server.h"

namespace tessera::gateway {
namespace {

using testing::TempDir;

EndpointRecord Endpoint(const std::string& name) {
  EndpointRecord record{.id = NewId("end_"), .owner = "me"};
  record.spec.name = name;
  record.spec.model_name = "m";
  record.spec.labels = {{"team", "red"}};
  record.spec.engine = {{"max_model_len", 512}};
  record.warnings = {"one", "two"};
  record.created_at = record.updated_at = 1000;
  return record;
}

EventRecord Event(std::string text) {
  return {.endpoint_id = "", .at = 1, .kind = "created", .text = std::move(text), .actor = "me"};
}

/// What holds of a store whatever its database is.
class EachStore : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "sqlite") return;
    static int number = 0;
    const std::string name = "store_" + std::to_string(++number);
    auto server = PostgresDatabase::Connect(testing::PostgresUrl("postgres"));
    ASSERT_TRUE(server.has_value()) << server.error().ToString();
    ASSERT_TRUE((*server)->Execute("CREATE DATABASE " + name).ok());
    url_ = testing::PostgresUrl(name);
  }
  Result<std::unique_ptr<Store>> Open(const std::filesystem::path& folder) {
    if (GetParam() == "sqlite") return Store::Open(folder);
    TESSERA_ASSIGN_OR_RETURN(auto database, PostgresDatabase::Connect(url_));
    return Store::Open(folder, std::move(database));
  }

 private:
  std::string url_;
};
INSTANTIATE_TEST_SUITE_P(Databases, EachStore, ::testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

TEST_P(EachStore, KeepsWhatItWasGivenAcrossOpening) {
  const TempDir dir;
  const EndpointRecord a = Endpoint("a");
  const WorkerRecord worker{.id = "wrk_1",
                            .endpoint_id = a.id,
                            .generation = 2,
                            .pid = 77,
                            .start_ticks = 88,
                            .port = 99,
                            .key = "k",
                            .started_at = 5};
  const FileRecord file{.id = "file-1",
                        .owner = "me",
                        .filename = "x.csv",
                        .bytes = 3,
                        .sha256 = "ab",
                        .created_at = 9};
  {
    auto store = Open(dir.path() / "state");
    ASSERT_TRUE(store.has_value()) << store.error().ToString();
    ASSERT_TRUE((*store)->InsertEndpoint(a, Event("made")).ok());
    ASSERT_TRUE((*store)->PutWorker(worker).ok());
    ASSERT_TRUE((*store)->InsertFile(file).ok());
  }
  auto store = Open(dir.path() / "state");
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(*(*store)->LoadEndpoints(), std::vector{a});
  EXPECT_EQ(*(*store)->LoadWorkers(), std::vector{worker});
  EXPECT_EQ(*(*store)->FindFile("me", "file-1"), file);
  EXPECT_EQ(*(*store)->FindFile("you", "file-1"), std::nullopt);
  const auto events = *(*store)->Events(a.id, 0, 10);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text, "made");
}

TEST_P(EachStore, OneNameHasOneEndpoint) {
  const TempDir dir;
  auto store = Open(dir.path());
  ASSERT_TRUE((*store)->InsertEndpoint(Endpoint("a"), Event("")).ok());
  const Status again = (*store)->InsertEndpoint(Endpoint("a"), Event(""));
  EXPECT_EQ(again.code(), Code::kAlreadyExists);
  EXPECT_EQ((*store)->LoadEndpoints()->size(), 1u);
}

TEST_P(EachStore, AnUpdateOfAnOldRevisionChangesNothing) {
  const TempDir dir;
  auto store = Open(dir.path());
  EndpointRecord record = Endpoint("a");
  ASSERT_TRUE((*store)->InsertEndpoint(record, Event("")).ok());
  record.revision = 2;
  record.spec.max_workers = 7;
  ASSERT_TRUE((*store)->UpdateEndpoint(record, 1, Event("")).ok());
  EndpointRecord late = record;
  late.spec.max_workers = 9;
  EXPECT_EQ((*store)->UpdateEndpoint(late, 1, Event("")).code(), Code::kFailedPrecondition);
  EXPECT_EQ(*(*store)->LoadEndpoints(), std::vector{record});
  EXPECT_EQ((*store)->Events(record.id, 0, 10)->size(), 2u);
  ASSERT_TRUE((*store)->RemoveEndpoint(record.id).ok());
  EXPECT_TRUE((*store)->LoadEndpoints()->empty());
  EXPECT_TRUE((*store)->Events(record.id, 0, 10)->empty());
}

TEST_P(EachStore, OldEventsGo) {
  const TempDir dir;
  auto store = Open(dir.path());
  EventRecord event = Event("");
  event.endpoint_id = "e";
  int64_t last = 0;
  for (int64_t i = 0; i < kEventsPerEndpointMax + 3; ++i) last = *(*store)->AppendEvent(event);
  const auto events = *(*store)->Events("e", 0, 1 << 20);
  EXPECT_EQ(static_cast<int64_t>(events.size()), kEventsPerEndpointMax);
  EXPECT_EQ(events.back().sequence, last);
  EXPECT_EQ((*store)->Events("e", last - 2, 10)->size(), 2u);
}

// The child reports each acknowledged name through a pipe and is killed amid its writes.
TEST_P(EachStore, AKillLosesNothingThatWasAcknowledged) {
  const TempDir dir;
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = Open(dir.path());
    for (int i = 0; store.has_value() && i < 100000; ++i) {
      const EndpointRecord record = Endpoint("e" + std::to_string(i));
      if (!(*store)->InsertEndpoint(record, Event("")).ok()) break;
      if (write(fds[1], record.id.data(), record.id.size()) < 0) break;
    }
    _exit(0);
  }
  close(fds[1]);
  std::string acknowledged;
  char buffer[4096];
  while (acknowledged.size() < 300 * 30) {
    const ssize_t got = read(fds[0], buffer, sizeof buffer);
    ASSERT_GT(got, 0);
    acknowledged.append(buffer, static_cast<size_t>(got));
  }
  ASSERT_EQ(kill(child, SIGKILL), 0);
  for (ssize_t got; (got = read(fds[0], buffer, sizeof buffer)) > 0;)
    acknowledged.append(buffer, static_cast<size_t>(got));
  close(fds[0]);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  auto store = Open(dir.path());
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  std::set<std::string> ids;
  const auto kept = (*store)->LoadEndpoints();
  ASSERT_TRUE(kept.has_value());
  for (const EndpointRecord& record : *kept) ids.insert(record.id);
  ASSERT_EQ(acknowledged.size() % 30, 0u);
  for (size_t at = 0; at < acknowledged.size(); at += 30)
    EXPECT_TRUE(ids.contains(acknowledged.substr(at, 30)));
}

TEST(Store, SecondGatewayIsRefused) {
  const TempDir dir;
  auto store = Store::Open(dir.path());
  const auto second = Store::Open(dir.path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_NE(second.error().ToString().find("--state-dir"), std::string::npos);
}

TEST_P(EachStore, KeepsBodiesAsDeepAsTheApiAdmits) {
  const TempDir dir;
  auto deep = json::Parse(R"({"name":"a","model_name":"m","min_workers":0,"max_workers":1,)"
                          R"("per_worker":1,"rope_scaling":{"a":)" +
                              std::string(62, '[') + std::string(62, ']') + "}}",
                          {.max_depth = 64}, "body");
  ASSERT_TRUE(deep.has_value()) << deep.error().ToString();
  const auto asked = ReadCreate(deep->get_object());
  ASSERT_TRUE(asked.has_value());
  EndpointRecord record = Endpoint("a");
  record.spec = asked->spec;
  auto store = Open(dir.path());
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  ASSERT_TRUE((*store)->InsertEndpoint(record, Event("")).ok());
  const auto kept = (*store)->LoadEndpoints();
  ASSERT_TRUE(kept.has_value()) << kept.error().ToString();
  EXPECT_EQ(kept->front(), record);
}

TEST(Store, DamageAndNewerVersionsAreSaid) {
  const TempDir dir;
  {
    std::ofstream(dir.path() / kDatabaseFile) << std::string(4096, 'x');
    const auto store = Store::Open(dir.path());
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code(), Code::kDataLoss) << store.error().ToString();
  }
  EXPECT_EQ(std::filesystem::file_size(dir.path() / kDatabaseFile), 4096u) << "left as it was";
}

TEST(MakeId, LaterOnesSortBehind) {
  EXPECT_EQ(MakeId("end_", 0, 0, 0), "end_00000000000000000000000000");
  EXPECT_LT(MakeId("end_", 1, ~0ull, ~0ull), MakeId("end_", 2, 0, 0));
  EXPECT_NE(NewId("x"), NewId("x"));
}

TEST_P(EachStore, KeepsBatchesAndTheFilesOfAll) {
  const TempDir dir;
  const FileRecord mine{
      .id = "file-1", .owner = "me", .filename = "a", .sha256 = "0", .purpose = "batch"};
  const FileRecord yours{.id = "file-2", .owner = "you", .filename = "b", .sha256 = "1"};
  {
    const auto store = *Open(dir.path());
    ASSERT_TRUE(store->PutBatch("batch-2", "two").ok());
    ASSERT_TRUE(store->PutBatch("batch-1", "one").ok());
    ASSERT_TRUE(store->PutBatch("batch-2", "changed").ok());
    ASSERT_TRUE(store->PutBatch("batch-3", "gone").ok());
    ASSERT_TRUE(store->RemoveBatch("batch-3").ok());
    ASSERT_TRUE(store->InsertFile(mine).ok() && store->InsertFile(yours).ok());
  }
  const auto store = *Open(dir.path());
  EXPECT_EQ(*store->LoadBatches(), (std::vector<std::string>{"one", "changed"}));
  EXPECT_EQ(*store->LoadFiles(), (std::vector<FileRecord>{mine, yours}));
}

}  // namespace
}  // namespace tessera::gateway
