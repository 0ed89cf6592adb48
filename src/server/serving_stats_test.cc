// SPDX-License-Identifier: Apache-2.0
#include "server/serving_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "support/brake.h"
#include "support/fake_service.h"

namespace tessera::server {
namespace {

using Server = testing::FakeService;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ServingStats, NoClientMakesSeries) {
  ServingStats stats;
  for (int i = 0; i < 100; ++i) {
    stats.CountAnswer("", "BREW" + std::to_string(i), 405);
    stats.CountAnswer("", "GET", 404);
  }
  const auto answers = stats.Snapshot().answers;
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers.at({.route = "none", .method = "other", .status = 405}), 100);
  EXPECT_EQ(answers.at({.route = "none", .method = "GET", .status = 404}), 100);
}

TEST(ServingStats, AHitIsNoMiss) {
  using enum engine::CacheMiss::Reason;
  ServingStats stats;
  stats.CountCacheMiss(kNone);
  stats.CountCacheMiss(kDiffers);
  const auto misses = stats.Snapshot().cache_misses;
  EXPECT_EQ(misses.size(), 5u) << "all reasons, from the start";
  int64_t sum = 0;
  for (const auto& [reason, count] : misses) sum += count;
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(misses.at(engine::CacheMissName(kDiffers)), 1);
}

TEST(ServingStats, AreOnThePage) {
  Server server(Server::Says("hello"));
  server.Post("/v1/completions",
              R"({"model":"org/fake","prompt":"say\n","temperature":0,"max_tokens":20})");
  server.Post("/v1/completions", R"({"model":"org/fake","prompt":"say\n","guided_regex":"h*",)"
                                 R"("max_tokens":2})");
  (void)server.Call("BREW", "/x\"y");
  const auto has = [](const std::string& page, const char* what) {
    return page.find(what) != page.npos;
  };
  // Answers are counted after they were sent.
  std::string page;
  for (int i = 0; i < 1000 && !(has(page, "route=\"none\"") && has(page, "code=\"200\"} 2")); ++i)
    page = server.Call("GET", "/metrics").body;
  for (
      const char* line :
      {R"(tessera_http_requests_total{model_name="org/fake",route="/v1/completions",method="POST",code="200"} 2)",
       R"(route="none",method="other",code="404"} 1)",
       R"(tessera_prefix_cache_misses_total{model_name="org/fake",reason="never_stored"} 1)",
       R"(tessera_request_preparation_seconds_count{model_name="org/fake"} 2)",
       R"(tessera_grammar_compile_seconds_count{model_name="org/fake"} 1)",
       R"(tessera_memory_bytes{model_name="org/fake",owner="other"} )",
       R"(http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 2)",
       "process_resident_memory_bytes ", "process_open_fds ", "process_cpu_seconds_total ",
       "process_start_time_seconds ", "tessera_build_info{", "tessera_otlp_spans_total{"})
    EXPECT_THAT(page, HasSubstr(line));
  EXPECT_THAT(page, Not(HasSubstr("vllm:memory_bytes"))) << "ours alone has no twin";
}

TEST(ServingStats, ACancelIsTimed) {
  testing::Brake brake;
  testing::FakeSessionOptions options = brake.Options();
  options.next = Server::Says("hello").next;
  Server server(std::move(options));
  net::Response answer;
  std::thread client([&] {
    answer = server.Call("POST", "/v1/completions",
                         R"({"model":"org/fake","prompt":"say\n","max_tokens":20})",
                         {{"x-request-id", "mine"}});
  });
  brake.AwaitStep();
  EXPECT_EQ(server.Call("DELETE", "/v1/requests/mine").status, 200);
  brake.Release();
  client.join();
  EXPECT_EQ(answer.status, 499);
  EXPECT_THAT(server.Call("GET", "/metrics").body,
              HasSubstr("tessera_cancel_latency_seconds_count{model_name=\"org/fake\"} 1"));
}

}  // namespace
}  // namespace tessera::server
