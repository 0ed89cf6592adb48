// SPDX-License-Identifier: Apache-2.0
//
// What is told of a request when it is over, over a loopback socket with a fake model.
#include "server/request_record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log_line.h"
#include "server/request_observer.h"
#include "support/fake_service.h"

namespace tessera::server {
namespace {

using testing::FakeSessionOptions;
using Server = testing::FakeService;
using ::testing::HasSubstr;
using ::testing::Not;

/// Keeps what it hears of.
class Ended {
 public:
  ApiOptions Options() {
    ApiOptions options;
    options.on_request_end = [this](const RequestRecord& record) {
      const std::lock_guard lock(mutex_);
      records_.push_back(record);
      more_.notify_all();
    };
    return options;
  }
  /// The one that ends next; the peer may have its answer a moment before.
  RequestRecord Next() {
    std::unique_lock lock(mutex_);
    const bool came =
        more_.wait_for(lock, std::chrono::seconds(20), [this] { return records_.size() > seen_; });
    EXPECT_TRUE(came) << "no request ended";
    return came ? records_[seen_++] : RequestRecord{};
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return records_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<RequestRecord> records_;
  size_t seen_ = 0;
};

std::string Line(const RequestRecord& record) {
  const std::vector<log::Field> fields = AccessFields(record);
  return log::JsonLine({{}, "info", "http", "request", fields});
}

constexpr std::string_view kCompletion =
    R"({"model":"org/fake","prompt":"say\n","max_tokens":20,"temperature":0})";
constexpr std::string_view kStream =
    R"({"model":"org/fake","prompt":"say\n","max_tokens":20,"temperature":0,"stream":true})";

TEST(RequestRecord, TellsWhatBecameOfAGeneration) {
  Ended ended;
  Server server(Server::Says("hello"), ended.Options());
  for (const std::string_view body : {kCompletion, kStream}) {
    (void)server.Call("POST", "/v1/completions", std::string(body), {{"x-request-id", "mine"}});
    const RequestRecord record = ended.Next();
    EXPECT_EQ(record.request_id, "mine");
    EXPECT_EQ(record.method, "POST");
    EXPECT_EQ(record.path, "/v1/completions");
    EXPECT_EQ(record.route, "/v1/completions");
    EXPECT_EQ(record.model, "org/fake");
    EXPECT_EQ(record.status, 200);
    EXPECT_FALSE(record.was_cut);
    ASSERT_TRUE(record.generation.has_value());
    const GenerationFacts& facts = *record.generation;
    EXPECT_EQ(facts.prompt_tokens, 4);
    EXPECT_EQ(facts.output_tokens, 6);
    EXPECT_TRUE(facts.has_token);
    EXPECT_EQ(facts.reason, engine::FinishReason::kStop);
    EXPECT_GT(facts.prefill, Duration::zero());
    EXPECT_GE(record.duration, facts.queue + facts.prefill + facts.decode);
    EXPECT_THAT(Line(record), HasSubstr(R"("finish_reason":"stop")"));
    EXPECT_THAT(Line(record), HasSubstr(R"("ttft_ms":)"));
  }
}

TEST(RequestRecord, CountsAPromptOnceAndEveryChoice) {
  Ended ended;
  Server server(Server::Says("hello"), ended.Options());
  (void)server.Post("/v1/completions",
                    R"({"model":"org/fake","prompt":["a\n","bcd\n"],"n":3,"max_tokens":2})");
  const RequestRecord record = ended.Next();
  ASSERT_TRUE(record.generation.has_value());
  EXPECT_EQ(record.generation->prompt_tokens, 6);
  EXPECT_EQ(record.generation->output_tokens, 12);
  EXPECT_EQ(record.generation->reason, engine::FinishReason::kLength);
}

TEST(RequestRecord, IsOneForEachRequestWhateverItsEnd) {
  Ended ended;
  Server server(Server::Says("hello"), ended.Options());
  const auto status = [&](const char* method, const char* path, const char* body) {
    const net::Response response = server.Call(method, path, body);
    const RequestRecord record = ended.Next();
    EXPECT_EQ(record.status, response.status) << path;
    EXPECT_FALSE(record.generation.has_value()) << path;
    return record.route;
  };
  EXPECT_EQ(status("GET", "/livez", ""), "/livez");
  EXPECT_EQ(status("GET", "/v1/models/org/fake", ""), "/v1/models/{id...}");
  EXPECT_EQ(status("GET", "/nowhere", ""), "");
  EXPECT_EQ(status("GET", "/v1/completions", ""), "");
  EXPECT_EQ(status("OPTIONS", "/v1/completions", ""), "");
  EXPECT_EQ(status("POST", "/v1/completions", "{"), "/v1/completions");
  EXPECT_EQ(status("POST", "/v1/messages", "{}"), "/v1/messages");
  EXPECT_EQ(ended.count(), 7u);
}

TEST(RequestRecord, TellsOfAClientThatLeft) {
  Ended ended;
  FakeSessionOptions slow = Server::Says("hello");
  slow.on_step = [](int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return Status();
  };
  Server server(std::move(slow), ended.Options());
  net::HttpClient client({.port = server.service->port()});
  const auto left = client.Stream({.method = "POST",
                                   .target = "/v1/completions",
                                   .headers = {{"Content-Type", "application/json"}},
                                   .body = R"({"model":"org/fake","prompt":"say\n","stream":true,)"
                                           R"("ignore_eos":true,"max_tokens":200})"},
                                  nullptr, [&](std::string_view) {
                                    return false;  // Enough.
                                  });
  EXPECT_FALSE(left.has_value());
  const RequestRecord record = ended.Next();
  EXPECT_EQ(record.status, 200) << "the stream had begun";
  EXPECT_TRUE(record.was_cut);
  ASSERT_TRUE(record.generation.has_value());
  EXPECT_EQ(record.generation->reason, engine::FinishReason::kCancelled);
  EXPECT_THAT(Line(record), HasSubstr(R"("cut":true)"));
}

TEST(RequestRecord, TellsTheTraceAndAnswersWithIt) {
  Ended ended;
  Server server(Server::Says("hello"), ended.Options());
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const net::Response response =
      server.Call("GET", "/livez", "", {{"traceparent", "00-" + trace + "-00f067aa0ba902b7-01"}});
  const RequestRecord record = ended.Next();
  EXPECT_EQ(record.trace.trace_id, trace);
  EXPECT_EQ(response.headers.Find("traceresponse"),
            "00-" + trace + "-" + record.trace.span_id + "-01");
  EXPECT_THAT(Line(record), HasSubstr(trace));
}

TEST(RequestRecord, HoldsNothingThatWasSaid) {
  Ended ended;
  Server server(Server::Says("SECRETOUTPUT"), ended.Options());
  (void)server.Call("POST", "/v1/completions",
                    R"({"model":"org/fake","prompt":"SECRETPROMPT\n","max_tokens":20})",
                    {{"authorization", "Bearer SECRETKEY"}});
  EXPECT_THAT(Line(ended.Next()), Not(HasSubstr("SECRET")));
}

TEST(RequestScope, ReportsOnceAndAnAbandonedRequestAs500) {
  std::vector<int> ends;
  const auto hear = [&](const RequestRecord& record) { ends.push_back(record.status); };
  const auto open = [&] {
    return std::make_unique<RequestScope>(RequestRecord{}, &Clock::Real(), hear);
  };
  auto scope = open();
  scope->Begin(200);
  scope->End();
  scope->EndCut();
  scope.reset();
  EXPECT_EQ(ends, std::vector<int>({200}));
  open().reset();
  open()->EndCut();
  scope = open();
  scope->Begin(200);
  scope.reset();
  EXPECT_EQ(ends, std::vector<int>({200, 500, 499, 200}));
}

engine::Finish EndOf(engine::FinishReason reason, int64_t queue_ms, int64_t prefill_ms,
                     int64_t decode_ms) {
  using std::chrono::milliseconds;
  engine::Finish finish;
  finish.reason = reason;
  finish.generated_tokens = decode_ms > 0 ? 5 : 0;
  finish.queue = milliseconds(queue_ms);
  finish.prefill = milliseconds(prefill_ms);
  finish.decode = milliseconds(decode_ms);
  return finish;
}

TEST(GenerationFacts, SpanAllChoices) {
  using engine::FinishReason;
  using std::chrono::milliseconds;
  GenerationFacts facts;
  facts.Add(EndOf(FinishReason::kLength, 10, 30, 50));
  facts.Add(EndOf(FinishReason::kStop, 20, 10, 100));
  EXPECT_EQ(facts.queue, milliseconds(10));
  EXPECT_EQ(facts.prefill, milliseconds(20));
  EXPECT_EQ(facts.decode, milliseconds(100));
  EXPECT_EQ(facts.reason, FinishReason::kLength);
}

TEST(GenerationFacts, AChoiceWithoutATokenMovesNoFirstToken) {
  using engine::FinishReason;
  using std::chrono::milliseconds;
  GenerationFacts facts;
  facts.Add(EndOf(FinishReason::kCancelled, 5, 1, 0));
  EXPECT_FALSE(facts.has_token);
  facts.Add(EndOf(FinishReason::kStop, 10, 30, 50));
  EXPECT_TRUE(facts.has_token);
  EXPECT_EQ(facts.queue, milliseconds(5));
  EXPECT_EQ(facts.queue + facts.prefill, milliseconds(40));
  EXPECT_EQ(facts.decode, milliseconds(50));
  EXPECT_EQ(facts.reason, FinishReason::kCancelled);
}

}  // namespace
}  // namespace tessera::server
