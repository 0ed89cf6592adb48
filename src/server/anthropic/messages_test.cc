// SPDX-License-Identifier: Apache-2.0
//
// The Messages API over a loopback socket, with a fake language model under a real engine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "engine/limits.h"
#include "server/anthropic/fields.h"
#include "server/limits.h"
#include "server/openai/schema.h"
#include "support/brake.h"
#include "support/fake_service.h"
#include "support/field_table.h"

namespace tessera::server::anthropic {
namespace {

using testing::FakeSessionOptions;
using Server = testing::FakeService;
using ::testing::HasSubstr;
using testing::Parsed;

constexpr const char* kPath = "/v1/messages";

std::string Body(std::string_view messages, std::string_view members = {}) {
  return fmt::format(R"({{"model":"org/fake","max_tokens":20,"temperature":0,"messages":{}{}{}}})",
                     messages, members.empty() ? "" : ",", members);
}
std::string Hi(std::string_view members = {}) {
  return Body(R"([{"role":"user","content":"hi"}])", members);
}
std::string TextOf(const json::Object& message) {
  return std::string(message.at("content").at(0).at("text").as_string());
}
std::string ErrorOf(Server* server, std::string body, int status = 400) {
  const json::Object answer = server->Post(kPath, std::move(body), status);
  EXPECT_EQ(answer.at("type").as_string(), "error");
  EXPECT_EQ(answer.at("error").at("type").as_string(), "invalid_request_error");
  return std::string(answer.at("error").at("message").as_string());
}

TEST(Messages, AnAnswerHasTheShapeThatClientsKnow) {
  Server server(Server::Says("hello"));
  json::Object body = server.Post(kPath, Hi());
  EXPECT_TRUE(body.at("id").as_string().starts_with("msg_"));
  body["id"] = "ID";
  EXPECT_EQ(json::Serialize(body),
            R"({"id":"ID","type":"message","role":"assistant","model":"org/fake","content":[)"
            R"({"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,)"
            R"("usage":{"input_tokens":21,"cache_creation_input_tokens":0,)"
            R"("cache_read_input_tokens":0,"output_tokens":6}})");
  const json::Object again = server.Post(kPath, Hi());
  EXPECT_EQ(json::Serialize(again.at("usage")),
            R"({"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,)"
            R"("output_tokens":6})");
}

TEST(Messages, AStreamHasTheEventsInTheirOrderAndTheSameText) {
  Server server(Server::Says("h\u00e9llo"));
  const auto events = server.Events(kPath, Hi("\"stream\":true,\"frobnicate\":1"));
  std::vector<std::string> types;
  std::string text;
  for (const net::SseEvent& event : events) {
    const json::Object data = Parsed(event.data);
    EXPECT_EQ(data.at("type").as_string(), event.event);
    if (event.event == "content_block_delta") {
      EXPECT_EQ(data.at("delta").at("type").as_string(), "text_delta");
      text += std::string_view(data.at("delta").at("text").as_string());
    }
    if (types.empty() || types.back() != event.event) types.push_back(event.event);
  }
  EXPECT_EQ(types, (std::vector<std::string>{"message_start", "content_block_start", "ping",
                                             "content_block_delta", "content_block_stop",
                                             "message_delta", "message_stop"}));
  EXPECT_EQ(text, "h\u00e9llo");
  const json::Object start = Parsed(events[0].data);
  EXPECT_TRUE(start.at("message").at("content").as_array().empty());
  EXPECT_EQ(start.at("message").at("usage").at("input_tokens").as_int64(), 21);
  const json::Object delta = Parsed(events[events.size() - 2].data);
  EXPECT_EQ(json::Serialize(delta.at("delta")),
            R"({"stop_reason":"end_turn","stop_sequence":null})");
  EXPECT_EQ(delta.at("usage").at("output_tokens").as_int64(), 7);
  EXPECT_EQ(delta.at("warnings").at(0).at("param").as_string(), "frobnicate");
}

TEST(Messages, TheStopReasonTellsWhy) {
  Server server(Server::Says("one, two, three"));
  const json::Object stopped = server.Post(kPath, Hi(R"("stop_sequences":["zzz",", t"])"));
  EXPECT_EQ(TextOf(stopped), "one");
  EXPECT_EQ(stopped.at("stop_reason").as_string(), "stop_sequence");
  EXPECT_EQ(stopped.at("stop_sequence").as_string(), ", t");
  const json::Object cut = server.Post(
      kPath, R"({"model":"org/fake","max_tokens":3,"messages":[{"role":"user","content":"hi"}],)"
             R"("temperature":0})");
  EXPECT_EQ(TextOf(cut), "one");
  EXPECT_EQ(cut.at("stop_reason").as_string(), "max_tokens");
}

TEST(Messages, SystemAndBlocksMakeTheSamePromptAsPlainStrings) {
  Server server({});
  const auto count = [&](std::string_view members) {
    return server
        .Post("/v1/messages/count_tokens", fmt::format(R"({{"model":"org/fake",{}}})", members))
        .at("input_tokens")
        .as_int64();
  };
  const auto chat = [&](std::string_view messages) {
    return server.Post("/tokenize", fmt::format(R"({{"messages":{}}})", messages))
        .at("count")
        .as_int64();
  };
  const int64_t expected =
      chat(R"([{"role":"system","content":"Be kind."},{"role":"user","content":"hi"}])");
  EXPECT_EQ(count(R"("system":"Be kind.","messages":[{"role":"user","content":"hi"}])"), expected);
  EXPECT_EQ(count(R"("system":[{"type":"text","text":"Be kind.","cache_control":{"type":)"
                  R"("ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text",)"
                  R"("text":"hi"}]}])"),
            expected);
  EXPECT_EQ(count(R"("messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}])"),
            chat(R"([{"role":"user","content":"a\nb"}])"))
      << "turns of one role are one";
}

TEST(Messages, ALastTurnOfTheAssistantIsGoneOnWith) {
  Server server({});
  const json::Object whole =
      server.Post("/v1/messages/count_tokens",
                  R"({"model":"org/fake","messages":[{"role":"user","content":"hi"}]})");
  const json::Object begun =
      server.Post("/v1/messages/count_tokens",
                  R"({"model":"org/fake","messages":[{"role":"user","content":"hi"},)"
                  R"({"role":"assistant","content":"<|im_end|>"}]})");
  EXPECT_EQ(begun.at("input_tokens").as_int64(),
            whole.at("input_tokens").as_int64() + static_cast<int64_t>(sizeof("<|im_end|>") - 1))
      << "its special tokens are text";
}

TEST(Messages, WarningsAreInTheBodyAndStrictRefusesThem) {
  Server server(Server::Says("x"));
  const std::string odd =
      R"([{"role":"user","zzz":1,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])";
  const json::Object answer = server.Post(kPath, Body(odd));
  ASSERT_EQ(answer.at("warnings").as_array().size(), 2u);
  EXPECT_EQ(answer.at("warnings").at(0).at("param").as_string(), "messages[0].zzz");
  EXPECT_EQ(answer.at("warnings").at(1).at("code").as_string(), "normalized");
  EXPECT_THAT(ErrorOf(&server, Body(odd, "\"strict\":true")), HasSubstr("messages[0].zzz"));
  const net::Response beta =
      server.Call("POST", kPath, Hi(), {{"anthropic-beta", "files-api-2025-04-14"}});
  EXPECT_THAT(beta.body, HasSubstr("anthropic-beta"));
  std::string strict = Hi();
  strict.insert(1, R"("strict":true,)");
  const net::Response refused =
      server.Call("POST", kPath, strict, {{"anthropic-beta", "files-api-2025-04-14"}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("anthropic-beta"));
  EXPECT_EQ(server.Call("POST", kPath, strict).status, 200);
}

TEST(Messages, BadInputNamesTheField) {
  Server server(Server::Says("x"));
  const auto message = [&](std::string_view members) {
    return ErrorOf(&server, fmt::format(R"({{"model":"org/fake",{}}})", members));
  };
  EXPECT_THAT(message(R"("messages":[{"role":"user","content":"x"}])"), HasSubstr("max_tokens"));
  EXPECT_THAT(message("\"max_tokens\":1"), HasSubstr("messages"));
  EXPECT_THAT(message(R"("max_tokens":0,"messages":[])"), HasSubstr("max_tokens is 0"));
  for (const char* turns :
       {"[]", "[1]", R"([{"content":"x"}])", R"([{"role":"system","content":"x"}])",
        R"([{"role":"user"}])", R"([{"role":"user","content":3}])",
        R"([{"role":"user","content":[]}])", R"([{"role":"user","content":[{"text":"x"}]}])",
        R"([{"role":"user","content":[{"type":"text"}]}])",
        R"([{"role":"assistant","content":"x"}])"})
    EXPECT_THAT(ErrorOf(&server, Body(turns)), HasSubstr("messages")) << turns;
  EXPECT_THAT(ErrorOf(&server, Body(R"([{"role":"user","content":[{"type":"image"}]}])")),
              HasSubstr("\"image\""));
  for (const char* member :
       {R"("top_p":1.01)", R"("top_p":-0.01)", R"("top_k":-1)", R"("stream":1)", R"("system":1)",
        R"("stop_sequences":"x")", R"("stop_sequences":[1])", R"("tools":[{"name":""}])",
        R"("thinking":{"type":"enabled"})"})
    EXPECT_THAT(ErrorOf(&server, Hi(member)),
                HasSubstr(std::string(member).substr(1, std::string(member).find(':') - 2)))
        << member;
  for (const char* member : {R"("top_p":1)", R"("top_k":0)", R"("tools":[])",
                             R"("thinking":{"type":"disabled"})", R"("metadata":{"user_id":"u"})"})
    EXPECT_FALSE(server.Post(kPath, Hi(member)).contains("warnings")) << member;
}

TEST(Messages, LimitsHoldAtTheirEdge) {
  Server server({});
  const auto status = [&](const std::string& body) {
    return server.Call("POST", "/v1/messages/count_tokens", body).status;
  };
  const auto turns = [](size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i)
      all += fmt::format(R"({}{{"role":"user","content":"x"}})", i == 0 ? "" : ",");
    return R"({"model":"org/fake","messages":[)" + all + "]}";
  };
  EXPECT_EQ(status(turns(kMessagesMax)), 200);
  EXPECT_EQ(status(turns(kMessagesMax + 1)), 400);
  const auto blocks = [](size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i)
      all += fmt::format(R"({}{{"type":"text","text":"x"}})", i == 0 ? "" : ",");
    return R"({"model":"org/fake","messages":[{"role":"user","content":[)" + all + "]}]}";
  };
  EXPECT_EQ(status(blocks(kContentPartsMax)), 200);
  EXPECT_EQ(status(blocks(kContentPartsMax + 1)), 400);
  const auto stops = [&](int64_t count) {
    std::string all;
    for (int64_t i = 0; i < count; ++i) all += fmt::format("{}\"s{}\"", i == 0 ? "" : ",", i);
    return server.Call("POST", kPath, Hi(fmt::format("\"stop_sequences\":[{}]", all)));
  };
  EXPECT_EQ(stops(engine::kStopStringsMax).status, 200);
  EXPECT_THAT(stops(engine::kStopStringsMax + 1).body, HasSubstr("stop_sequences has"));
}

TEST(Messages, ATooLongPromptNamesBothNumbers) {
  Server server({});
  const std::string message = ErrorOf(
      &server, Body(fmt::format(R"([{{"role":"user","content":"{}"}}])", std::string(300, 'x'))));
  EXPECT_THAT(message, HasSubstr("256"));
  EXPECT_THAT(message, HasSubstr("319"));
}

TEST(Messages, ErrorsOfTheRouterHaveThatShape) {
  ApiOptions options;
  options.access.api_keys = {"secret"};
  Server server(Server::Says("x"), options);
  const auto type = [&](const net::Response& response, int status) {
    EXPECT_EQ(response.status, status) << response.body;
    const json::Object body = Parsed(response.body);
    EXPECT_EQ(body.at("type").as_string(), "error");
    EXPECT_EQ(body.at("request_id").as_string(), *response.headers.Find("x-request-id"));
    return std::string(body.at("error").at("type").as_string());
  };
  EXPECT_EQ(type(server.Call("POST", kPath, Hi()), 401), "authentication_error");
  const net::Headers key{{"x-api-key", "secret"}};
  EXPECT_EQ(server.Call("POST", kPath, Hi(), key).status, 200);
  EXPECT_EQ(type(server.Call("GET", kPath, "", key), 405), "invalid_request_error");
  EXPECT_EQ(type(server.Call("POST", "/v1/messages/batches", "{}", key), 404), "not_found_error");
  EXPECT_EQ(type(server.Call("POST", kPath, R"({"model":"claude","max_tokens":1})", key), 404),
            "not_found_error");
  EXPECT_EQ(type(server.Call("POST", kPath, "{", key), 400), "invalid_request_error");
}

TEST(Messages, AFailedStepIsAnErrorOrAnErrorEvent) {
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step == 1 ? Internal("no luck") : Status(); };
  Server first(options);
  const json::Object body = first.Post(kPath, Hi("\"stream\":true"), 500);
  EXPECT_EQ(body.at("error").at("type").as_string(), "api_error");
  options.on_step = [](int64_t step) { return step == 3 ? Internal("no luck") : Status(); };
  options.next = [](std::span<const int32_t>) { return 'x'; };
  Server later(options);
  const auto events = later.Events(kPath, Hi("\"stream\":true"));
  EXPECT_EQ(events.back().event, "error");
  EXPECT_THAT(events.back().data, HasSubstr("no luck"));
}

TEST(Messages, AStreamIsCancelledByItsId) {
  testing::Brake brake;
  Server server(brake.Options());
  net::HttpClient client({.port = server.service->port()});
  std::thread deleter([&] {
    brake.AwaitStep();
    EXPECT_EQ(server.Call("DELETE", "/v1/requests/mine").status, 200);
    brake.Release();
  });
  const auto response =
      client.Call({"POST",
                   kPath,
                   {{"Content-Type", "application/json"}, {"X-Request-Id", "mine"}},
                   Hi("\"stream\":true")});
  deleter.join();
  ASSERT_TRUE(response.has_value());
  EXPECT_THAT(response->body, HasSubstr("DELETE /v1/requests"));
}

TEST(Messages, TheReferencePageListsEveryField) {
  testing::ExpectFieldTable(MessageFields(),
                            {{kMessages, "messages"}, {kCountTokens, "count_tokens"}},
                            "messages-fields");
}

}  // namespace
}  // namespace tessera::server::anthropic
