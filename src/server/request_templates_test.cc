// SPDX-License-Identifier: Apache-2.0
#include "server/request_templates.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/limits.h"
#include "support/fake_service.h"

namespace tessera::server {
namespace {

using Server = testing::FakeService;
using ::testing::HasSubstr;

std::string Chat(std::string_view members) {
  return fmt::format(
      R"({{"model":"org/fake","temperature":0,"messages":[{{"role":"user","content":"hi"}}],{}}})",
      members);
}

constexpr std::string_view kOwnTemplate =
    R"("chat_template":"{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}=")";

TEST(RequestTemplate, IsRefusedUnlessTheOperatorLetsIt) {
  Server server(Server::Answers("x"));
  for (const char* path : {"/v1/chat/completions", "/apply-template", "/tokenize"}) {
    const json::Object error = server.Post(path, Chat(kOwnTemplate), 400).at("error").as_object();
    EXPECT_EQ(error.at("param"), "chat_template") << path;
    EXPECT_EQ(error.at("code"), "unsupported_parameter");
    EXPECT_THAT(std::string(error.at("message").as_string()),
                HasSubstr("--trust-request-chat-template"));
  }
}

ServedModel TrustingModel() {
  ServedModel model = testing::FakeServedModel();
  model.request_templates = std::make_shared<RequestTemplates>(
      json::Object(), std::vector<std::string>{"<|im_end|>"}, text::ChatFormatOptions{});
  return model;
}

TEST(RequestTemplate, StandsForTheModelsOwn) {
  Server server(Server::Answers("x"), {}, {}, TrustingModel());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(server.Post("/apply-template", Chat(kOwnTemplate)).at("prompt"), "<user>hi=");
  EXPECT_EQ(
      server.Post("/v1/chat/completions", Chat(fmt::format("{},\"max_tokens\":1", kOwnTemplate)))
          .at("usage")
          .at("prompt_tokens"),
      9);
  const json::Object error =
      server.Post("/apply-template", Chat("\"chat_template\":\"{% if %}\""), 400)
          .at("error")
          .as_object();
  EXPECT_EQ(error.at("param"), "chat_template");
}

TEST(RequestTemplate, HowItWritesCallsIsLearnt) {
  // It knows tools and writes calls as [CALL]{...}[/CALL].
  constexpr std::string_view kTemplate =
      R"("chat_template":"{% for t in tools or [] %}{{ t | tojson }}{% endfor %})"
      R"({% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }})"
      R"({% for c in m.tool_calls or [] %}[CALL]{{ {'name': c.function.name, 'arguments': )"
      R"(c.function.arguments} | tojson }}[/CALL]{% endfor %}<|im_end|>{% endfor %})"
      R"({% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")";
  Server server(Server::Answers("[CALL]{\"name\": \"add\", \"arguments\": {}}[/CALL]"), {}, {},
                TrustingModel());
  const json::Object body = server.Post(
      "/v1/chat/completions",
      Chat(fmt::format(R"({},"tools":[{{"type":"function","function":{{"name":"add"}}}}])",
                       kTemplate)));
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "tool_calls") << json::Serialize(body);
  EXPECT_FALSE(body.contains("warnings")) << json::Serialize(body);
}

TEST(RequestTemplate, OnlyTheLastOnesAreKept) {
  RequestTemplates templates({}, {}, {});
  for (size_t i = 0; i < 2 * kRequestTemplatesMax; ++i) {
    const std::string source = fmt::format("{{{{ messages[0].content }}}}{}", i);
    const auto first = templates.Get(source);
    ASSERT_TRUE(first.has_value()) << first.error().ToString();
    EXPECT_EQ(templates.Get(source)->chat_template, first->chat_template);
    if (i == 0) continue;
    const auto older = templates.Get("{{ messages[0].content }}0");
    EXPECT_EQ(older->chat_template->source(), "{{ messages[0].content }}0");
  }
}

}  // namespace
}  // namespace tessera::server
