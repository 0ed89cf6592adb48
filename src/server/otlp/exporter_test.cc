// SPDX-License-Identifier: Apache-2.0
//
// The exporter against a collector of ours on a loopback socket.
#include "server/otlp/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "net/server.h"

namespace tessera::server::otlp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// Answers `statuses` in turn, then 200.
class Collector {
 public:
  explicit Collector(std::vector<int> statuses = {}, std::string body = "{}")
      : statuses_(std::move(statuses)), body_(std::move(body)) {
    auto server = net::Server::Start({}, [this](net::Request request, net::ResponseWriter writer) {
      Take(std::move(request), writer);
    });
    EXPECT_TRUE(server.has_value());
    server_ = *std::move(server);
  }
  uint16_t port() const { return server_->port(); }
  std::vector<net::Request> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  /// Holds every answer back until it is let go.
  void Hold() {
    const std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void LetGo() {
    const std::lock_guard lock(mutex_);
    is_held_ = false;
    changed_.notify_all();
  }
  void AwaitCall() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(20), [this] { return !calls_.empty(); }));
  }

 private:
  void Take(net::Request request, const net::ResponseWriter& writer) {
    int status = 200;
    {
      std::unique_lock lock(mutex_);
      if (calls_.size() < statuses_.size()) status = statuses_[calls_.size()];
      calls_.push_back(std::move(request));
      changed_.notify_all();
      changed_.wait(lock, [this] { return !is_held_; });
    }
    (void)writer.Send(net::Response::Json(status, body_));
  }

  const std::vector<int> statuses_;
  const std::string body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false;
  std::vector<net::Request> calls_;
  std::unique_ptr<net::Server> server_;  // Ends first.
};

std::unique_ptr<Exporter> To(uint16_t port, size_t queue = 100, size_t batch = 100) {
  auto exporter = Exporter::Start({.endpoint = {.host = "127.0.0.1",
                                                .port = port,
                                                .target = "/v1/traces",
                                                .name = "the test's"},
                                   .queue_requests = queue,
                                   .batch_requests = batch,
                                   .linger = seconds(60),
                                   .retry_wait = milliseconds(1),
                                   .tries = 3});
  EXPECT_TRUE(exporter.has_value());
  return *std::move(exporter);
}

RequestRecord Record(bool is_sampled = true) {
  RequestRecord record;
  record.trace = ReadTraceContext({});
  record.trace.flags = is_sampled ? kTraceSampled : 0;
  record.method = "GET";
  record.route = record.path = "/livez";
  record.status = 200;
  return record;
}

TEST(Exporter, SendsBatchesAsJson) {
  Collector collector;
  const auto exporter = To(collector.port(), 100, 3);
  for (int i = 0; i < 5; ++i) exporter->Export(Record());
  exporter->Flush(seconds(20));
  const auto calls = collector.calls();
  ASSERT_EQ(calls.size(), 2u) << "three, and what was left";
  EXPECT_EQ(calls[0].method, "POST");
  EXPECT_EQ(calls[0].path, "/v1/traces");
  EXPECT_EQ(calls[0].headers.Find("content-type"), "application/json");
  EXPECT_THAT(calls[0].body, HasSubstr(R"("GET /livez")"));
  EXPECT_EQ(exporter->counters().sent, 5u);
}

TEST(Exporter, LeavesOutWhatIsNotSampled) {
  Collector collector;
  const auto exporter = To(collector.port());
  exporter->Export(Record(false));
  exporter->Flush(seconds(20));
  EXPECT_TRUE(collector.calls().empty());
}

TEST(Exporter, DropsWhatTheQueueDoesNotTakeAndNeverWaits) {
  Collector collector;
  collector.Hold();
  const auto exporter = To(collector.port(), 4, 1);
  exporter->Export(Record());
  collector.AwaitCall();  // It is under way, and out of the queue.
  for (int i = 0; i < 4 + 3; ++i) exporter->Export(Record());
  EXPECT_EQ(exporter->counters().dropped, 3u);
  collector.LetGo();
  exporter->Flush(seconds(20));
  EXPECT_EQ(exporter->counters().sent, 5u);
}

TEST(Exporter, TriesAgainWhereThatMayHelp) {
  Collector collector({503, 429});
  const auto exporter = To(collector.port());
  exporter->Export(Record());
  exporter->Flush(seconds(20));
  const auto calls = collector.calls();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].body, calls[2].body);
  EXPECT_EQ(exporter->counters().sent, 1u);
  EXPECT_EQ(exporter->counters().failed, 0u);
}

TEST(Exporter, GivesUpInTheEndAndGoesOn) {
  Collector collector({503, 503, 503, 400});
  const auto exporter = To(collector.port());
  for (int i = 0; i < 3; ++i) {
    exporter->Export(Record());
    exporter->Flush(seconds(20));
  }
  EXPECT_EQ(collector.calls().size(), 5u) << "three tries, one refusal, one success";
  EXPECT_EQ(exporter->counters().failed, 2u);
  EXPECT_EQ(exporter->counters().sent, 1u);
}

TEST(Exporter, CountsWhatTheCollectorRejects) {
  Collector collector({}, R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"x"}})");
  const auto exporter = To(collector.port());
  for (int i = 0; i < 3; ++i) exporter->Export(Record());
  exporter->Flush(seconds(20));
  EXPECT_EQ(exporter->counters().rejected, 2u);
  EXPECT_EQ(exporter->counters().sent, 1u);
}

TEST(Exporter, ADeadCollectorCostsNothingButSpans) {
  uint16_t port = 0;
  { port = Collector().port(); }  // Nobody is there any more.
  const auto exporter = To(port);
  exporter->Export(Record());
  exporter->Flush(seconds(20));
  EXPECT_EQ(exporter->counters().failed, 1u);
}

TEST(Exporter, EndsWhileACollectorIsSilent) {
  Collector collector;
  collector.Hold();
  auto exporter = To(collector.port(), 100, 1);
  exporter->Export(Record());
  collector.AwaitCall();
  exporter->Flush(milliseconds(10));  // Patience is bounded.
  const TimePoint begin = Clock::Real().Now();
  exporter.reset();
  EXPECT_LT(Clock::Real().Now() - begin, seconds(5));
  collector.LetGo();
}

}  // namespace
}  // namespace tessera::server::otlp
