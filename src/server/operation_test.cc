// SPDX-License-Identifier: Apache-2.0
//
// The routes by which a server is operated, over a loopback socket: readiness, cancelling, pings,
// strictness, model cards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "server/service.h"
#include "support/brake.h"
#include "support/fake_service.h"

namespace tessera::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Brake;
using testing::FakeSessionOptions;
using Server = testing::FakeService;
using ::testing::HasSubstr;
using testing::Parsed;

std::string Completion(std::string_view members, std::string_view prompt = "say\\n") {
  return fmt::format(R"({{"model":"org/fake","prompt":"{}","temperature":0{}{}}})", prompt,
                     members.empty() ? "" : ",", members);
}
void AwaitIdle(const Server& server) {
  const auto deadline = Clock::Real().Now() + seconds(20);
  while (server.service->engine().stats().running + server.service->engine().stats().waiting > 0 &&
         Clock::Real().Now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(server.service->engine().stats().kv_pages_used, 0);
}

/// Answers for ever, at the pace of a model.
FakeSessionOptions Endless() {
  FakeSessionOptions options;
  options.shape.max_seq_len = 100'000;
  options.shape.page_count = 10'000;
  options.next = [](std::span<const int32_t>) { return 'x'; };
  options.on_step = [](int64_t) {
    std::this_thread::sleep_for(milliseconds(1));
    return Status();
  };
  return options;
}

TEST(Operation, ACancelledRequestIs499AndFreesItsPages) {
  Server server(Endless());
  net::Response response;
  std::thread client([&] {
    response = server.Call("POST", "/v1/completions",
                           Completion("\"max_tokens\":50000,\"ignore_eos\":true"),
                           {{"X-Request-Id", "team/mine"}});
  });
  while (server.service->engine().stats().generation_tokens < 3) std::this_thread::yield();
  const net::Response cancelled = server.Call("DELETE", "/v1/requests/team/mine");
  client.join();
  EXPECT_EQ(cancelled.status, 200) << cancelled.body;
  EXPECT_EQ(cancelled.body, R"({"id":"team/mine","object":"request","cancelled":true,"count":1})");
  EXPECT_EQ(response.status, 499);
  EXPECT_EQ(Parsed(response.body).at("error").at("code").as_string(), "request_cancelled");
  AwaitIdle(server);
  EXPECT_EQ(server.service->engine().stats().finished_cancelled, 1);
  EXPECT_EQ(server.Call("DELETE", "/v1/requests/team/mine").status, 404);
}

TEST(Operation, AStreamIsCancelledByTheIdInItsChunks) {
  Server server(Endless());
  net::HttpClient client({.port = server.service->port()});
  std::string received;
  int deleted = 0;
  const auto response = client.Stream(
      {"POST",
       "/v1/completions",
       {{"Content-Type", "application/json"}},
       Completion("\"max_tokens\":50000,\"ignore_eos\":true,\"stream\":true")},
      nullptr, [&](std::string_view bytes) {
        received += bytes;
        const size_t begin = received.find("cmpl-");
        if (deleted == 0 && begin != received.npos && received.size() > begin + 37)
          deleted = server.Call("DELETE", "/v1/requests/" + received.substr(begin, 37)).status;
        return true;
      });
  EXPECT_TRUE(response.has_value());
  EXPECT_EQ(deleted, 200);
  EXPECT_THAT(received, HasSubstr("request_cancelled"));
  EXPECT_THAT(received, ::testing::Not(HasSubstr("[DONE]")));
  AwaitIdle(server);
}

TEST(Operation, AQueuedRequestIsCancelledBeforeItRuns) {
  Brake brake;
  Server server(brake.Options(), {}, {.max_running = 1, .queue_length = 8});
  net::Response first, second;
  std::thread running(
      [&] { first = server.Call("POST", "/v1/completions", Completion("\"max_tokens\":2")); });
  brake.AwaitStep();
  std::thread queued([&] {
    second = server.Call("POST", "/generate",
                         R"({"text":"say","rid":"q-1","sampling_params":{"temperature":0}})");
  });
  // The first counts as waiting until its step ends.
  while (server.service->engine().stats().waiting < 2) std::this_thread::yield();
  EXPECT_EQ(server.Call("DELETE", "/v1/requests/q-1").status, 200);
  brake.Release();
  queued.join();
  running.join();
  EXPECT_EQ(second.status, 499);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(server.service->engine().stats().prompt_tokens, 4) << "it never ran";
}

TEST(Operation, WhatHasEndedCannotBeCancelled) {
  Server server(Server::Says("hello"));
  const json::Object answer = server.Post("/v1/completions", Completion(""));
  const net::Response gone =
      server.Call("DELETE", "/v1/requests/" + std::string(answer.at("id").as_string()));
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(Parsed(gone.body).at("error").at("code").as_string(), "request_not_found");
}

TEST(Operation, ReadyRestsOnAStepThatIsNotOld) {
  ApiOptions options;
  options.ready_age = seconds(3600);
  Server server(Server::Says("x"), options);
  const auto steps = [&] { return server.service->engine().stats().steps; };
  EXPECT_EQ(server.Call("GET", "/readyz").status, 200);
  EXPECT_EQ(steps(), 1) << "no step was known: one was made";
  EXPECT_EQ(server.Call("GET", "/readyz").status, 200);
  EXPECT_EQ(steps(), 1) << "it is evidence for an hour";
  EXPECT_EQ(server.Scrape().at("tessera_generation_tokens_total"), 0);
  EXPECT_EQ(server.Scrape().at("tessera_request_success_total"), 0);
}

TEST(Operation, ReadyMakesAStepWhenTheLastIsOld) {
  ApiOptions options;
  options.ready_age = Duration::zero();
  Server server(Server::Says("x"), options);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(server.Call("GET", "/readyz").status, 200);
    EXPECT_EQ(server.service->engine().stats().steps, i);
  }
}

TEST(Operation, AModelThatCannotStepIsNotReady) {
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step > 0 ? Internal("no luck") : Status(); };
  Server server(options);
  const net::Response response = server.Call("GET", "/readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("no luck"));
  EXPECT_EQ(server.Call("GET", "/livez").status, 200);
}

TEST(Operation, ASilentStreamGetsPings) {
  Brake brake;
  ApiOptions options;
  options.ping_interval = milliseconds(20);
  Server server(brake.Options(), options);
  std::string received;
  net::HttpClient client({.port = server.service->port()});
  const auto response =
      client.Stream({"POST",
                     "/v1/completions",
                     {{"Content-Type", "application/json"}},
                     Completion("\"max_tokens\":2,\"ignore_eos\":true,\"stream\":true")},
                    nullptr, [&](std::string_view bytes) {
                      received += bytes;
                      if (received.find(": ping\n\n: ping\n\n") != received.npos) brake.Release();
                      return true;
                    });
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 200);
  EXPECT_TRUE(received.starts_with(": ping\n\n")) << "the first token had not come yet";
  EXPECT_THAT(received, HasSubstr("data: [DONE]"));
}

TEST(Operation, StrictTurnsWarningsIntoErrors) {
  Server server(Server::Says("hello"));
  const auto refused = [&](const char* path, std::string body) {
    const json::Object answer = server.Post(path, std::move(body), 400);
    EXPECT_THAT(std::string(answer.at("error").at("message").as_string()), HasSubstr("strict"));
    return std::string(answer.at("error").at("param").as_string());
  };
  EXPECT_EQ(refused("/v1/completions", Completion("\"strict\":true,\"frobnicate\":1")),
            "frobnicate");
  EXPECT_EQ(refused("/v1/chat/completions",
                    R"({"model":"org/fake","strict":true,"messages":[{"role":"user","zzz":1,)"
                    R"("content":"x"}]})"),
            "messages[0].zzz");
  EXPECT_EQ(refused("/tokenize", R"({"prompt":"x","strict":true,"a":1})"), "a");
  EXPECT_EQ(refused("/detokenize", R"({"tokens":[1],"strict":true,"a":1})"), "a");
  EXPECT_EQ(refused("/apply-template",
                    R"({"messages":[{"role":"user","content":"x"}],"strict":true,"a":1})"),
            "a");
  const net::Response generate =
      server.Call("POST", "/generate", R"({"text":"say","strict":true,"a":1})");
  EXPECT_EQ(generate.status, 400);
  EXPECT_THAT(generate.body, HasSubstr("\\\"a\\\""));
  EXPECT_FALSE(server.Post("/v1/completions", Completion("\"strict\":true")).contains("warnings"));
  EXPECT_TRUE(
      server.Post("/v1/completions", Completion("\"strict\":false,\"a\":1")).contains("warnings"));
  server.Post("/v1/completions", Completion("\"strict\":1"), 400);
}

TEST(Operation, ApplyTemplateShowsWhatIsTokenised) {
  Server server({});
  const std::string messages = R"("messages":[{"role":"user","content":"hi"}])";
  const json::Object with = server.Post("/apply-template", "{" + messages + "}");
  EXPECT_EQ(with.at("prompt").as_string(),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  const json::Object tokens = server.Post("/tokenize", "{" + messages + "}");
  const json::Object text = server.Post(
      "/detokenize", fmt::format(R"({{"tokens":{}}})", json::Serialize(tokens.at("tokens"))));
  EXPECT_EQ(text.at("prompt"), with.at("prompt"));
  EXPECT_EQ(server.Post("/apply-template", "{" + messages + R"(,"add_generation_prompt":false})")
                .at("prompt")
                .as_string(),
            "<|im_start|>user\nhi<|im_end|>\n");
  server.Post("/apply-template", "{}", 400);
  server.Post("/apply-template", R"({"messages":[]})", 400);
}

TEST(Operation, AModelCardTellsContextAndEffectiveDefaults) {
  Server server({});
  const json::Object card = Parsed(server.Call("GET", "/v1/models/org/fake").body);
  EXPECT_EQ(card.at("context_length").as_int64(), 256);
  EXPECT_EQ(card.at("kv_cache_tokens").as_int64(), 32 * 16);
  EXPECT_EQ(card.at("default_max_tokens").at("completions").as_int64(), 16);
  EXPECT_EQ(card.at("default_sampling_params").at("temperature").as_double(), 1.0);
  EXPECT_TRUE(card.at("capabilities").at("chat").as_bool());
  EXPECT_FALSE(card.at("capabilities").at("suffix").as_bool());
}

TEST(Operation, TheKeyMayComeInEitherHeader) {
  ApiOptions options;
  options.access.api_keys = {"secret"};
  Server server(Server::Says("x"), options);
  const auto status = [&](const net::Headers& headers) {
    return server.Call("POST", "/v1/completions", Completion(""), headers).status;
  };
  EXPECT_EQ(status({{"X-Api-Key", "secret"}}), 200);
  EXPECT_EQ(status({{"X-Api-Key", "secre"}}), 401);
  EXPECT_EQ(status({{"Authorization", "secret"}}), 401);
  EXPECT_EQ(status({{"Authorization", "Bearer wrong"}, {"X-Api-Key", "secret"}}), 401);
}

}  // namespace
}  // namespace tessera::server
