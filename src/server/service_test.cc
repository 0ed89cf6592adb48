// SPDX-License-Identifier: Apache-2.0
//
// The whole HTTP side over a loopback socket, with a fake language model under a real engine.
#include "server/service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "base/utf8.h"
#include "net/client.h"
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
std::string Chat(std::string_view members) {
  return fmt::format(
      R"({{"model":"org/fake","messages":[{{"role":"user","content":"hi"}}],"temperature":0{}{}}})",
      members.empty() ? "" : ",", members);
}

TEST(Service, CompletionHasTheShapeThatClientsKnow) {
  Server server(Server::Says("hello"));
  json::Object body = server.Post("/v1/completions", Completion("\"max_tokens\":20"));
  EXPECT_TRUE(body.at("id").as_string().starts_with("cmpl-"));
  EXPECT_GT(body.at("created").as_int64(), 1'700'000'000);
  body["id"] = "ID";
  body["created"] = 0;
  EXPECT_EQ(
      json::Serialize(body),
      R"({"id":"ID","object":"text_completion","created":0,"model":"org/fake",)"
      R"("system_fingerprint":"fp_fake","choices":[{"index":0,"text":"hello","logprobs":null,)"
      R"("finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":6,)"
      R"("total_tokens":10,"prompt_tokens_details":{"cached_tokens":0,"cache_miss":)"
      R"({"reason":"never_stored","position":0}}}})");
}

TEST(Service, ChatHasTheShapeThatClientsKnow) {
  Server server(Server::Says("hello"));
  json::Object body = server.Post("/v1/chat/completions", Chat("\"max_tokens\":3"));
  EXPECT_TRUE(body.at("id").as_string().starts_with("chatcmpl-"));
  body["id"] = "ID";
  body["created"] = 0;
  EXPECT_EQ(json::Serialize(body),
            R"({"id":"ID","object":"chat.completion","created":0,"model":"org/fake",)"
            R"("system_fingerprint":"fp_fake","choices":[{"index":0,"message":{"role":"assistant",)"
            R"("content":"hel","refusal":null},"logprobs":null,"finish_reason":"length"}],)"
            R"("usage":{"prompt_tokens":21,"completion_tokens":3,"total_tokens":24,)"
            R"("prompt_tokens_details":{"cached_tokens":0,"cache_miss":)"
            R"({"reason":"never_stored","position":0}}}})");
}

TEST(Service, AChatStreamIsTheWholeAnswerInPieces) {
  Server server(Server::Says("h\u00e9llo \u65e5\u672c"));
  const std::vector<std::string> events = server.Stream(
      "/v1/chat/completions",
      Chat(R"("stream":true,"stream_options":{"include_usage":true},"frobnicate":1)"));
  ASSERT_GE(events.size(), 5u);
  EXPECT_EQ(events.back(), "[DONE]");
  const json::Object first = Parsed(events.front());
  EXPECT_EQ(first.at("object").as_string(), "chat.completion.chunk");
  EXPECT_EQ(first.at("choices").at(0).at("delta").at("role").as_string(), "assistant");
  std::string text;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const json::Object chunk = Parsed(events[i]);
    EXPECT_EQ(chunk.at("id"), first.at("id"));
    EXPECT_TRUE(chunk.at("usage").is_null());
    EXPECT_FALSE(chunk.contains("warnings"));
    const json::Object& choice = chunk.at("choices").at(0).as_object();
    EXPECT_EQ(choice.at("finish_reason").is_null(), i + 3 < events.size());
    if (const auto* piece = choice.at("delta").as_object().if_contains("content")) {
      EXPECT_TRUE(IsUtf8(piece->as_string()));
      text += std::string_view(piece->as_string());
    }
  }
  EXPECT_EQ(text, "h\u00e9llo \u65e5\u672c");
  const json::Object last = Parsed(events[events.size() - 2]);
  EXPECT_TRUE(last.at("choices").as_array().empty());
  EXPECT_EQ(last.at("usage").at("completion_tokens").as_int64(), 14);
  EXPECT_EQ(last.at("warnings").at(0).at("param").as_string(), "frobnicate");
}

TEST(Service, WithoutUsageTheWarningsAreInTheLastChunk) {
  Server server(Server::Says("ok"));
  const std::vector<std::string> events =
      server.Stream("/v1/completions", Completion("\"stream\":true,\"frobnicate\":1"));
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::Object chunk = Parsed(events[i]);
    EXPECT_FALSE(chunk.contains("usage"));
    EXPECT_EQ(chunk.contains("warnings"), i + 2 == events.size());
    EXPECT_EQ(chunk.at("choices").as_array().size(), 1u);
  }
}

TEST(Service, StopStringsCutStreamAndWholeAlike) {
  Server server(Server::Says("one, two, three"));
  const std::string stop = R"("max_tokens":30,"stop":[", th"])";
  const json::Object whole = server.Post("/v1/completions", Completion(stop));
  EXPECT_EQ(whole.at("choices").at(0).at("text").as_string(), "one, two");
  EXPECT_EQ(whole.at("choices").at(0).at("finish_reason").as_string(), "stop");
  EXPECT_EQ(whole.at("usage").at("completion_tokens").as_int64(), 12);
  std::string text;
  for (const std::string& event :
       server.Stream("/v1/completions", Completion(stop + ",\"stream\":true")))
    if (event != "[DONE]")
      text += std::string_view(Parsed(event).at("choices").at(0).at("text").as_string());
  EXPECT_EQ(text, "one, two");
  const json::Object kept =
      server.Post("/v1/completions", Completion(stop + ",\"include_stop_str_in_output\":true"));
  EXPECT_EQ(kept.at("choices").at(0).at("text").as_string(), "one, two, th");
}

TEST(Service, PromptListsTimesNKeepTheirOrder) {
  Server server({});
  const auto texts = [&](std::string_view prompt, std::string_view members) {
    std::vector<std::string> found;
    const json::Object body = server.Post(
        "/v1/completions",
        fmt::format(R"({{"model":"org/fake","prompt":{},"max_tokens":6,"logit_bias":{}{}}})",
                    prompt, R"({"256":-100,"257":-100,"258":-100})", members));
    const json::Array& choices = body.at("choices").as_array();
    for (size_t i = 0; i < choices.size(); ++i) {
      EXPECT_EQ(choices[i].at("index").as_int64(), static_cast<int64_t>(i));
      found.emplace_back(choices[i].at("text").as_string());
    }
    return found;
  };
  const std::string greedy = ",\"temperature\":0";
  const auto a = texts("\"a\"", greedy), b = texts("\"b\"", greedy);
  EXPECT_EQ(texts(R"(["a","b","a"])", greedy), (std::vector<std::string>{a[0], b[0], a[0]}));
  EXPECT_EQ(texts(R"([[97],[98]])", greedy), (std::vector<std::string>{a[0], b[0]}));
  EXPECT_EQ(texts("\"a\"", greedy + ",\"n\":3"), (std::vector<std::string>{a[0], a[0], a[0]}));
  const std::string seeded = ",\"temperature\":1.5,\"seed\":4,\"n\":4";
  const auto drawn = texts("\"a\"", seeded);
  EXPECT_EQ(drawn, texts("\"a\"", seeded));
  EXPECT_GT(std::set<std::string>(drawn.begin(), drawn.end()).size(), 1u);
}

TEST(Service, ThePromptIsCountedOnceForAllChoices) {
  Server server(Server::Says("abc"));
  const json::Object body = server.Post("/v1/completions", Completion("\"n\":3"));
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 4);
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 12);
}

TEST(Service, EchoPutsThePromptBefore) {
  Server server(Server::Says("abc"));
  EXPECT_EQ(server.Post("/v1/completions", Completion("\"echo\":true"))
                .at("choices")
                .at(0)
                .at("text")
                .as_string(),
            "say\nabc");
  std::string text;
  for (const std::string& event :
       server.Stream("/v1/completions", Completion("\"echo\":true,\"stream\":true")))
    if (event != "[DONE]")
      text += std::string_view(Parsed(event).at("choices").at(0).at("text").as_string());
  EXPECT_EQ(text, "say\nabc");
}

TEST(Service, CompletionLogprobsAreTheSameInAStream) {
  Server server(Server::Says("h\u00e9y"));
  const json::Object whole = server.Post("/v1/completions", Completion("\"logprobs\":2"));
  const json::Object& info = whole.at("choices").at(0).at("logprobs").as_object();
  EXPECT_EQ(json::Serialize(info.at("tokens")), R"(["h","bytes:\\xc3","bytes:\\xa9","y"])");
  EXPECT_EQ(json::Serialize(info.at("text_offset")), "[0,1,1,2]");
  for (size_t i = 0; i < 4; ++i) {
    const json::Object& top = info.at("top_logprobs").at(i).as_object();
    EXPECT_EQ(top.size(), 2u);
    EXPECT_EQ(top.at(info.at("tokens").at(i).as_string()), info.at("token_logprobs").at(i));
  }
  json::Array streamed;
  for (const std::string& event :
       server.Stream("/v1/completions", Completion("\"logprobs\":2,\"stream\":true"))) {
    if (event == "[DONE]") continue;
    const json::Object chunk = Parsed(event);
    for (const json::Value& value :
         chunk.at("choices").at(0).at("logprobs").at("token_logprobs").as_array())
      streamed.push_back(value);
  }
  EXPECT_EQ(streamed, info.at("token_logprobs").as_array());
}

TEST(Service, ChatLogprobsHaveBytes) {
  Server server(Server::Says("\u00e9"));
  const json::Object body =
      server.Post("/v1/chat/completions", Chat("\"logprobs\":true,\"top_logprobs\":3"));
  const json::Array& content = body.at("choices").at(0).at("logprobs").at("content").as_array();
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(json::Serialize(content[0].at("bytes")), "[195]");
  EXPECT_EQ(content[0].at("top_logprobs").as_array().size(), 3u);
  EXPECT_EQ(content[0].at("token"), content[0].at("top_logprobs").at(0).at("token"));
}

TEST(Service, ATooLongPromptNamesBothNumbers) {
  Server server({});
  const net::Response response =
      server.Call("POST", "/v1/completions", Completion("\"max_tokens\":2", std::string(300, 'x')));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("300"));
  EXPECT_THAT(response.body, HasSubstr("256"));
  EXPECT_EQ(server.Post("/v1/completions", Completion("\"max_tokens\":257"), 400)
                .at("error")
                .at("code")
                .as_string(),
            "context_length_exceeded");
}

TEST(Service, ErrorsHaveTheirStatusAndObject) {
  Server server(Server::Says("x"));
  const auto error = [&](const net::Response& response) {
    EXPECT_EQ(response.headers.Find("content-type"), "application/json");
    const json::Object body = Parsed(response.body);
    for (const char* key : {"message", "type", "param", "code"})
      EXPECT_TRUE(body.at("error").as_object().contains(key));
    return response.status;
  };
  EXPECT_EQ(error(server.Call("GET", "/v1/nothing-here")), 404);
  const net::Response wrong = server.Call("GET", "/v1/chat/completions");
  EXPECT_EQ(error(wrong), 405);
  EXPECT_THAT(std::string(*wrong.headers.Find("allow")), HasSubstr("POST"));
  EXPECT_EQ(
      error(server.Call("POST", "/v1/chat/completions", "a=b", {{"Content-Type", "text/plain"}})),
      415);
  EXPECT_EQ(error(server.Call("POST", "/v1/completions", "{")), 400);
  EXPECT_EQ(error(server.Call("GET", "/v1/models/no-such-model")), 404);
  EXPECT_EQ(error(server.Call("POST", "/v1/completions", R"({"model":"gpt-nope","prompt":"x"})")),
            404);
}

TEST(Service, ModelCardsAndVersion) {
  Server server({});
  const json::Object list = Parsed(server.Call("GET", "/v1/models").body);
  EXPECT_EQ(list.at("object").as_string(), "list");
  const json::Value& card = list.at("data").at(0);
  EXPECT_EQ(card.at("id").as_string(), "org/fake");
  EXPECT_EQ(card.at("max_model_len").as_int64(), 256);
  EXPECT_EQ(Parsed(server.Call("GET", "/v1/models/org/fake").body), card.as_object());
  EXPECT_EQ(Parsed(server.Call("GET", "/version").body).at("version").as_string(), TESSERA_VERSION);
}

TEST(Service, TokenizeAndDetokenizeAreInverse) {
  Server server({});
  const json::Object tokens = server.Post("/tokenize", R"({"prompt":"h\u00e9 <|im_start|>"})");
  EXPECT_EQ(json::Serialize(tokens.at("tokens")), "[104,195,169,32,256]");
  EXPECT_EQ(tokens.at("count").as_int64(), 5);
  EXPECT_EQ(tokens.at("max_model_len").as_int64(), 256);
  EXPECT_EQ(server
                .Post("/detokenize",
                      fmt::format(R"({{"tokens":{}}})", json::Serialize(tokens.at("tokens"))))
                .at("prompt")
                .as_string(),
            "h\u00e9 <|im_start|>");
  const json::Object chat =
      server.Post("/tokenize", R"({"messages":[{"role":"user","content":"hi"}]})");
  EXPECT_EQ(chat.at("count").as_int64(), 21);
  for (const char* bad :
       {R"({"tokens":[1000000000]})", R"({"tokens":[-1]})", R"({"tokens":"x"})", "{}"})
    server.Post("/detokenize", bad, 400);
  server.Post("/tokenize", "{}", 400);
  server.Post("/tokenize", R"({"prompt":"a","messages":[]})", 400);
}

TEST(Service, HealthIsEmptyAndReady) {
  Server server({});
  for (const char* path : {"/health", "/readyz", "/livez"}) {
    const net::Response response = server.Call("GET", path);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "");
  }
}

TEST(Service, MetricsCountTokensUnderBothNames) {
  Server server(Server::Says("hello"));
  const auto before = server.Scrape();
  server.Post("/v1/completions", Completion("\"max_tokens\":20"));
  auto after = server.Scrape();
  for (const std::string prefix : {"tessera_", "vllm:"}) {
    const auto grew = [&](const std::string& name) {
      return after.at(prefix + name) - before.at(prefix + name);
    };
    EXPECT_EQ(grew("prompt_tokens_total"), 4);
    EXPECT_EQ(grew("generation_tokens_total"), 6);
    EXPECT_EQ(grew("request_success_total"), 1);
    EXPECT_EQ(grew("request_generation_tokens_sum"), 6);
    EXPECT_EQ(grew("inter_token_latency_seconds_count"), 5);
    for (const char* name : {"time_to_first_token_seconds", "e2e_request_latency_seconds",
                             "request_queue_time_seconds", "request_prefill_time_seconds",
                             "request_decode_time_seconds", "request_prompt_tokens"})
      EXPECT_EQ(grew(std::string(name) + "_count"), 1) << name;
    EXPECT_EQ(after.at(prefix + "num_requests_running"), 0);
  }
  const std::string page = server.Call("GET", "/metrics").body;
  EXPECT_THAT(page, HasSubstr("# TYPE tessera_num_requests_running gauge"));
  EXPECT_THAT(page, HasSubstr("# HELP vllm:prompt_tokens_total "));
  EXPECT_THAT(page, HasSubstr("model_name=\"org/fake\""));
  EXPECT_THAT(page, HasSubstr("le=\"+Inf\""));
}

/// What the answer's usage says of its prompt.
std::string Details(const json::Object& answer) {
  return json::Serialize(answer.at("usage").at("prompt_tokens_details"));
}

TEST(Service, UsageSaysWhatThePrefixCacheHadAndWhyNotMore) {
  Server server(Server::Says("hello"));
  const std::string path = "/v1/completions";
  const std::string body = Completion("", "0123456789 0123456789 0123456789\\n");
  const json::Object cold = server.Post(path, body);
  EXPECT_EQ(Details(cold),
            R"({"cached_tokens":0,"cache_miss":{"reason":"never_stored","position":0}})");
  const json::Object warm = server.Post(path, body);
  EXPECT_EQ(Details(warm), R"({"cached_tokens":32})");
  EXPECT_EQ(warm.at("choices"), cold.at("choices"));
  EXPECT_EQ(Details(server.Post(path, Completion("", "0123456789 01234X\\n"))),
            R"({"cached_tokens":16,"cache_miss":{"reason":"differs","position":16}})");
  const auto values = server.Scrape();
  EXPECT_EQ(values.at("tessera_prefix_cache_queries_total"), 33 + 33 + 18);
  EXPECT_EQ(values.at("tessera_prefix_cache_hits_total"), 32 + 16);
  EXPECT_EQ(values.at("vllm:prefix_cache_hits_total"), 32 + 16);
  EXPECT_GE(values.at("tessera_prefix_cache_pages"), 3);
  EXPECT_EQ(values.at("tessera_prefix_cache_evictions_total"), 0);
  EXPECT_EQ(values.at("tessera_kv_cache_usage_perc"), 0) << "what is only cached can be had";
}

TEST(Service, CachePromptFalseNeitherTakesNorLeaves) {
  Server server(Server::Says("hello"));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(Details(server.Post("/v1/chat/completions", Chat(R"("cache_prompt":false)"))),
              R"({"cached_tokens":0,"cache_miss":{"reason":"off"}})");
  EXPECT_EQ(server.Scrape().at("tessera_prefix_cache_pages"), 0);
  server.Post("/v1/chat/completions", Chat(R"("cache_prompt":1)"), 400);
}

TEST(Service, CachedTokensOfSeveralAnswersAreCountedOncePerPrompt) {
  Server server(Server::Says("hello"));
  const json::Object cold = server.Post("/v1/chat/completions", Chat("\"n\":3"));
  EXPECT_EQ(Details(cold),
            R"({"cached_tokens":0,"cache_miss":{"reason":"never_stored","position":0}})")
      << "one of the three had to compute it";
  EXPECT_EQ(Details(server.Post("/v1/chat/completions", Chat("\"n\":3"))),
            R"({"cached_tokens":20})");
  const std::string two = R"({"model":"org/fake","prompt":["say it\n","say it\n"],"n":2})";
  server.Post("/v1/completions", two);
  EXPECT_EQ(Details(server.Post("/v1/completions", two)), R"({"cached_tokens":12})");
}

TEST(Service, AStreamsUsageCountsCachedTokensToo) {
  Server server(Server::Says("hello"));
  const std::string body = Chat(R"("stream":true,"stream_options":{"include_usage":true})");
  server.Stream("/v1/chat/completions", body);
  const std::vector<std::string> events = server.Stream("/v1/chat/completions", body);
  EXPECT_EQ(Details(Parsed(events[events.size() - 2])), R"({"cached_tokens":20})");
}

TEST(Service, WarningsOfMessagesAndFieldsAreGivenAndCounted) {
  Server server(Server::Says("hello"));
  const std::string body =
      R"({"model":"org/fake","temperature":0,"frobnicate":1,"messages":[{"role":"user","zzz":1,)"
      R"("content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},)"
      R"({"type":"text","text":"there"}]}]})";
  const json::Object answer = server.Post("/v1/chat/completions", body);
  std::vector<std::string> unknown;
  for (const json::Value& warning : answer.at("warnings").as_array())
    if (warning.at("code").as_string() == "unknown_field")
      unknown.emplace_back(warning.at("param").as_string());
  EXPECT_THAT(unknown, ::testing::UnorderedElementsAre("frobnicate", "messages[0].zzz",
                                                       "messages[0].content[0].cache_control"));
  const std::string page = server.Call("GET", "/metrics").body;
  EXPECT_THAT(page, HasSubstr("tessera_request_warnings_total{model_name=\"org/fake\","
                              "code=\"unknown_field\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("code=\"normalized\"} 1\n"));  // Parts joined.
  EXPECT_THAT(page, ::testing::Not(HasSubstr("vllm:request_warnings")));
}

TEST(Service, LabelsWithoutEffectAreNoWarning) {
  Server server(Server::Says("hello"));
  const json::Object answer =
      server.Post("/v1/chat/completions",
                  Chat(R"("user":"u","store":false,"metadata":{"a":"b"},"service_tier":"auto")"));
  EXPECT_FALSE(answer.contains("warnings"));
}

TEST(Service, AKeyIsAskedForWhereSet) {
  Server server(Server::Says("x"), {.access = {.api_keys = {"secret"}}});
  const std::string body = Completion("");
  EXPECT_EQ(server.Call("POST", "/v1/completions", body).status, 401);
  EXPECT_EQ(
      server.Call("POST", "/v1/completions", body, {{"Authorization", "Bearer secre"}}).status,
      401);
  EXPECT_EQ(
      server.Call("POST", "/v1/completions", body, {{"Authorization", "Basic secret"}}).status,
      401);
  EXPECT_EQ(
      server.Call("POST", "/v1/completions", body, {{"Authorization", "Bearer secret"}}).status,
      200);
  EXPECT_EQ(server.Call("GET", "/v1/models").status, 401);
  for (const char* open : {"/health", "/metrics", "/livez", "/version"})
    EXPECT_EQ(server.Call("GET", open).status, 200) << open;
}

TEST(Service, CorsHeadersAreSentWhereAskedFor) {
  Server closed(Server::Says("x"));
  EXPECT_FALSE(closed.Call("GET", "/health").headers.Has("access-control-allow-origin"));
  Server open(Server::Says("x"), {.cors_origin = "*"});
  EXPECT_EQ(open.Call("GET", "/health").headers.Find("access-control-allow-origin"), "*");
  const net::Response preflight = open.Call("OPTIONS", "/v1/completions", "",
                                            {{"Origin", "http://example.org"},
                                             {"Access-Control-Request-Method", "POST"},
                                             {"Access-Control-Request-Headers", "authorization"}});
  EXPECT_EQ(preflight.status, 204);
  EXPECT_THAT(std::string(*preflight.headers.Find("access-control-allow-methods")),
              HasSubstr("POST"));
  EXPECT_EQ(preflight.headers.Find("access-control-allow-headers"), "authorization");
}

TEST(Service, AFullQueueIs429WithRetryAfter) {
  Brake brake;
  Server server(brake.Options(), {}, {.max_running = 1, .queue_length = 2});
  std::vector<std::thread> clients;
  clients.emplace_back([&] { server.Post("/v1/completions", Completion("\"max_tokens\":2")); });
  brake.AwaitStep();
  const net::Response refused = server.Call("POST", "/v1/completions", Completion("\"n\":2"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.Find("retry-after"), "1") << "no rate is known yet";
  EXPECT_THAT(refused.body, HasSubstr("queue"));
  const net::Response never = server.Call("POST", "/v1/completions", Completion("\"n\":3"));
  EXPECT_EQ(never.status, 400) << "it would not fit into an empty queue";
  EXPECT_THAT(never.body, HasSubstr("--queue-length"));
  brake.Release();
  for (std::thread& client : clients) client.join();
}

TEST(Service, AFailedFirstStepIsAnHttpErrorEvenForAStream) {
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step == 1 ? Internal("no luck") : Status(); };
  Server server(options);
  const net::Response response =
      server.Call("POST", "/v1/completions", Completion("\"stream\":true"));
  EXPECT_EQ(response.status, 500);
  EXPECT_THAT(response.body, HasSubstr("no luck"));
  EXPECT_EQ(server.Call("POST", "/v1/completions", Completion("")).status, 200);
}

TEST(Service, ALaterFailureIsAnEventOfTheStream) {
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step == 3 ? Internal("no luck") : Status(); };
  Server server(options);
  const std::vector<std::string> events = server.Stream(
      "/v1/completions", Completion("\"stream\":true,\"max_tokens\":9,\"ignore_eos\":true"));
  EXPECT_THAT(events.back(), HasSubstr("no luck"));
}

TEST(Service, AClientThatGoesAwayFreesItsPlace) {
  for (const bool stream : {true, false}) {
    FakeSessionOptions options;
    options.shape.max_seq_len = 100'000;
    options.shape.page_count = 10'000;
    options.next = [](std::span<const int32_t>) { return 'x'; };
    options.on_step = [](int64_t) {
      std::this_thread::sleep_for(milliseconds(1));  // The pace of a model, not a wait for one.
      return Status();
    };
    Server server(options);
    net::HttpClient client({.port = server.service->port()});
    const net::ClientRequest request{
        "POST",
        "/v1/completions",
        {{"Content-Type", "application/json"}},
        Completion(fmt::format("\"max_tokens\":50000,\"ignore_eos\":true,\"stream\":{}", stream))};
    std::thread leaver([&] {
      while (server.service->engine().stats().generation_tokens < 3) std::this_thread::yield();
      client.Cancel();
    });
    (void)client.Stream(request, nullptr, [](std::string_view) { return true; });
    leaver.join();
    const auto deadline = Clock::Real().Now() + seconds(20);
    while (server.service->engine().stats().running > 0 && Clock::Real().Now() < deadline)
      std::this_thread::yield();
    const engine::Stats stats = server.service->engine().stats();
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.kv_pages_used, 0);
    EXPECT_EQ(stats.finished_cancelled, 1);
  }
}

TEST(Service, BeforeTheModelIsThereAllButLivezSaysLoading) {
  ServiceOptions options;
  options.api.cors_origin = "*";
  auto listening = HttpService::Listen(options, Clock::Real());
  ASSERT_TRUE(listening.has_value()) << listening.error().ToString();
  HttpService& service = **listening;
  const auto call = [&](std::string method, std::string target) {
    net::HttpClient client({.port = service.port()});
    return client.Call({std::move(method), std::move(target), {}, {}}).value();
  };
  EXPECT_EQ(call("GET", "/livez").status, 200);
  for (const auto& [method, target] : {std::pair("GET", "/readyz"),
                                       {"GET", "/health"},
                                       {"POST", "/v1/completions"},
                                       {"GET", "/v1/models"},
                                       {"GET", "/metrics"},
                                       {"GET", "/nowhere"}}) {
    const net::Response response = call(method, target);
    EXPECT_EQ(response.status, 503) << target;
    EXPECT_TRUE(response.headers.Has("retry-after")) << target;
    EXPECT_TRUE(response.headers.Has("access-control-allow-origin")) << target;
    EXPECT_EQ(Parsed(response.body).at("error").at("code").as_string(), "loading") << target;
  }
  // A second server is told at once that the port is taken.
  options.http.port = service.port();
  const auto second = HttpService::Listen(options, Clock::Real());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kAlreadyExists);

  auto engine = engine::Engine::Start(std::make_unique<testing::FakeSession>(Server::Says("hello")),
                                      {}, Clock::Real());
  service.Serve(testing::FakeServedModel(), std::move(*engine));
  EXPECT_EQ(call("GET", "/readyz").status, 200);
  EXPECT_EQ(call("GET", "/nowhere").status, 404);
  EXPECT_TRUE(service.Drain(seconds(5)).ok());
}

TEST(Service, DrainBeforeTheModelIsThereEndsAtOnce) {
  auto listening = HttpService::Listen({}, Clock::Real());
  ASSERT_TRUE(listening.has_value());
  EXPECT_TRUE((*listening)->Drain(seconds(30)).ok());
}

TEST(Service, DrainFinishesWhatRunsAndRefusesTheRest) {
  Brake brake;
  Server server(brake.Options());
  std::atomic<int> status{0};
  std::thread client([&] {
    status = server.Call("POST", "/v1/completions", Completion("\"max_tokens\":3")).status;
  });
  brake.AwaitStep();
  Status drained;
  std::thread drainer([&] { drained = server.service->Drain(seconds(30)); });
  while (!server.service->engine().draining()) std::this_thread::yield();
  EXPECT_EQ(server.Call("GET", "/readyz").status, 503);
  EXPECT_EQ(server.Call("GET", "/livez").status, 200);
  const net::Response refused = server.Call("POST", "/v1/completions", Completion(""));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.headers.Has("retry-after"));
  brake.Release();
  drainer.join();
  client.join();
  EXPECT_TRUE(drained.ok()) << drained.ToString();
  EXPECT_EQ(status, 200);
}

}  // namespace
}  // namespace tessera::server
