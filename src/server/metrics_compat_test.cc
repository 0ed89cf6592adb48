// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "support/fake_service.h"

namespace tessera::server {
namespace {

using Server = testing::FakeService;
using ::testing::HasSubstr;
using ::testing::Not;

Server WithNames(MetricsNames names) {
  ApiOptions options;
  options.metrics_names = names;
  return Server(Server::Says("hello"), options);
}

constexpr const char* kBody =
    R"({"model":"org/fake","prompt":"say\n","temperature":0,"max_tokens":20})";

TEST(MetricsCompat, OthersNamesHaveTheSameValues) {
  Server server = WithNames({.vllm = true, .tgi = true, .llamacpp = true, .sglang = true});
  server.Post("/v1/completions", kBody);
  server.Post("/v1/completions", kBody);
  const auto values = server.Scrape();
  const auto expect = [&](const char* name, double wanted) {
    ASSERT_TRUE(values.contains(name)) << name;
    EXPECT_EQ(values.at(name), wanted) << name;
  };
  expect("tgi_request_count", 2);
  expect("tgi_request_success", 2);
  expect("tgi_request_failure", 0);
  expect("tgi_queue_size", 0);
  expect("tgi_request_duration_count", 2);
  expect("tgi_request_generated_tokens_sum", 12);
  expect("tgi_request_input_length_sum", 8);
  expect("llamacpp:prompt_tokens_total", 8);
  expect("llamacpp:tokens_predicted_total", 12);
  expect("llamacpp:requests_processing", 0);
  expect("llamacpp:kv_cache_usage_ratio", 0);
  expect("llamacpp:n_decode_total", values.at("tessera_engine_steps_total"));
  expect("sglang:num_running_reqs", 0);
  expect("sglang:prompt_tokens_total", 8);
  expect("sglang:cache_hit_rate", 3.0 / 8);
  expect("sglang:e2e_request_latency_seconds_count", 2);
  expect("sglang:e2e_request_latency_seconds_sum",
         values.at("tessera_e2e_request_latency_seconds_sum"));
  expect("vllm:prompt_tokens_total", 8);
}

TEST(MetricsCompat, EveryNameIsDeclaredOnceWithHelp) {
  Server server = WithNames({.vllm = true, .tgi = true, .llamacpp = true, .sglang = true});
  std::istringstream page(server.Call("GET", "/metrics").body);
  std::set<std::string> helps, types;
  std::string hash, word, name;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("# ")) continue;
    std::istringstream words(line);
    words >> hash >> word >> name;
    EXPECT_TRUE((word == "HELP" ? helps : types).insert(name).second) << line;
  }
  EXPECT_EQ(helps, types);
}

TEST(MetricsCompat, NamesAreThereOnlyWhereAskedFor) {
  Server plain = WithNames({});
  const std::string page = plain.Call("GET", "/metrics").body;
  EXPECT_THAT(page, HasSubstr("vllm:"));
  for (const char* prefix : {"tgi_", "llamacpp:", "sglang:"})
    EXPECT_THAT(page, Not(HasSubstr(prefix)));
  Server none = WithNames({.vllm = false});
  EXPECT_THAT(none.Call("GET", "/metrics").body, Not(HasSubstr("vllm:")));
}

}  // namespace
}  // namespace tessera::server
