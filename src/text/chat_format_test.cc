// SPDX-License-Identifier: Apache-2.0
#include "text/chat_format.h"

#include <gtest/gtest.h>

#include "support/fake_text.h"
#include "text/fixture_templates.h"
#include "text/kept_specials.h"

namespace tessera::text {
namespace {

struct Model {
  std::shared_ptr<const ChatTemplate> chat_template;
  json::Object vars;
  ChatFormat format;
};

Model Open(const char* name, const ChatFormatOptions& options = {}) {
  const auto& templates = FixtureTemplates();
  const FixtureTemplate& source = templates.at(name);
  Model model{ChatTemplate::Parse(source.source).value(), source.vars, {}};
  const std::vector<std::string> ends = {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|EOS|>"};
  auto format = LearnChatFormat(*model.chat_template, model.vars, ends, options);
  EXPECT_TRUE(format.has_value());
  model.format = *std::move(format);
  return model;
}

const json::Array& Tools() {
  static const json::Array tools = {
      {{"type", "function"},
       {"function",
        {{"name", "get_weather"},
         {"description", "Weather of a city."},
         {"parameters", {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}}}}}}};
  return tools;
}

json::Array History() {
  return {{{"role", "user"}, {"content", "Paris and Rome?"}},
          {{"role", "assistant"},
           {"content", ""},
           {"tool_calls",
            {{{"id", "call_0123456789"},
              {"type", "function"},
              {"function", {{"name", "get_weather"}, {"arguments", {{"city", "Paris"}}}}}},
             {{"id", "call_9876543210"},
              {"type", "function"},
              {"function", {{"name", "get_weather"}, {"arguments", {{"city", "Rome"}}}}}}}}},
          {{"role", "tool"}, {"tool_call_id", "call_0123456789"}, {"content", "sunny"}},
          {{"role", "tool"}, {"tool_call_id", "call_9876543210"}, {"content", "rainy"}}};
}

/// Nothing when the template fails.
std::optional<std::string> Prompt(const Model& model, json::Array messages,
                                  const json::Array& tools, bool* as_text) {
  RenderInput input;
  input.messages = std::move(messages);
  input.vars = model.vars;
  *as_text = WriteTools(model.format, tools, &input);
  const auto text = model.chat_template->Render(input);
  if (!text.has_value()) return std::nullopt;
  return *text;
}

TEST(ChatFormat, EveryTemplateGetsToolsCallsAndResults) {
  for (const auto& [name, source] : FixtureTemplates()) {
    if (name == "fireworks-ai-llama-3-firefunction-v2") continue;  // Needs variables of its own.
    SCOPED_TRACE(name);
    const Model model = Open(name.c_str());
    json::Array messages = History();
    if (!model.format.tool_syntax->several) {
      messages.pop_back();
      messages[1].at("tool_calls").as_array().pop_back();
    }
    bool as_text = false;
    const auto prompt = Prompt(model, messages, Tools(), &as_text);
    ASSERT_TRUE(prompt.has_value());
    EXPECT_EQ(as_text, !(model.format.shows_tools && model.format.writes_calls));
    for (const char* word : {"Weather of a city", "Paris", "sunny"})
      EXPECT_NE(prompt->find(word), std::string::npos) << word << "\n" << *prompt;
    // Once in the list of tools or its example, once in the call.
    const size_t first = prompt->find("get_weather");
    EXPECT_NE(prompt->find("get_weather", first + 1), std::string::npos) << *prompt;
  }
}

TEST(ChatFormat, ATemplateWithoutToolsGetsThemAsText) {
  const Model model = Open("smollm2");
  EXPECT_EQ(model.format.tool_syntax->name, "hermes");
  EXPECT_FALSE(model.format.shows_tools);
  EXPECT_FALSE(model.format.writes_calls);
  EXPECT_TRUE(model.format.takes_system);
  EXPECT_FALSE(model.format.reasoning.has_value());
  bool as_text = false;
  const std::string prompt = Prompt(model, History(), Tools(), &as_text).value();
  EXPECT_TRUE(as_text);
  EXPECT_TRUE(prompt.starts_with("<|im_start|>system\nThese functions can be called:\n<tools>\n{"))
      << prompt;
  EXPECT_NE(prompt.find("<|im_start|>assistant\n<tool_call>\n{\"name\": \"get_weather\", "
                        "\"arguments\": {\"city\":\"Paris\"}}\n</tool_call>\n<tool_call>\n"),
            std::string::npos)
      << prompt;
  EXPECT_TRUE(
      prompt.ends_with("<|im_start|>user\n<tool_response>\nsunny\n</tool_response>\n"
                       "<tool_response>\nrainy\n</tool_response><|im_end|>\n"
                       "<|im_start|>assistant\n"))
      << prompt;
}

TEST(ChatFormat, ASystemMessageIsKept) {
  const Model model = Open("smollm2");
  bool as_text = false;
  const std::string prompt =
      Prompt(model,
             {{{"role", "system"}, {"content", "Be kind."}}, {{"role", "user"}, {"content", "Hi"}}},
             Tools(), &as_text)
          .value();
  EXPECT_TRUE(prompt.starts_with("<|im_start|>system\nBe kind.\n\nThese functions")) << prompt;
  const Model gemma = Open("google-gemma-2-2b-it");
  EXPECT_FALSE(gemma.format.takes_system);
  const std::string first =
      Prompt(gemma, {{{"role", "user"}, {"content", "Hi"}}}, Tools(), &as_text).value();
  EXPECT_TRUE(first.starts_with("<bos><start_of_turn>user\nThese functions") ||
              first.starts_with("<|BOS|><start_of_turn>user\nThese functions"))
      << first;
  EXPECT_NE(first.find("\n\nHi<end_of_turn>"), std::string::npos) << first;
}

TEST(ChatFormat, WithoutToolsNothingIsAdded) {
  for (const char* name : {"smollm2", "qwen3"}) {
    const Model model = Open(name);
    bool as_text = true;
    const json::Array messages = {{{"role", "user"}, {"content", "Hi"}}};
    RenderInput plain;
    plain.messages = messages;
    plain.vars = model.vars;
    EXPECT_EQ(Prompt(model, messages, {}, &as_text), model.chat_template->Render(plain).value());
    EXPECT_FALSE(as_text);
  }
}

TEST(ChatFormat, ATemplateThatAsksForAListGetsAnEmptyOne) {
  const Model model = Open("NousResearch-Hermes-3-Llama-3.1-8B-tool_use");
  bool as_text = true;
  EXPECT_TRUE(Prompt(model, {{{"role", "user"}, {"content", "Hi"}}}, {}, &as_text).has_value());
  EXPECT_FALSE(as_text);
}

TEST(ChatFormat, IdsBecomeWhatTheTemplateAsksFor) {
  const Model model = Open("mistralai-Mistral-Nemo-Instruct-2407");
  bool as_text = false;
  const std::string prompt = Prompt(model, History(), Tools(), &as_text).value();
  EXPECT_FALSE(as_text);
  EXPECT_NE(prompt.find("\"id\": \"call00000\"}, {"), std::string::npos) << prompt;
  EXPECT_NE(prompt.find("\"call_id\": \"call00001\""), std::string::npos) << prompt;
}

TEST(ChatFormat, OptionsNameWhatToUse) {
  const Model model =
      Open("qwen3", {.tool_call_parser = "mistral", .reasoning_parser = "deepseek_r1"});
  EXPECT_EQ(model.format.tool_syntax->name, "mistral");
  EXPECT_EQ(model.format.reasoning->name, "deepseek_r1");
  EXPECT_EQ(Open("qwen3").format.reasoning->name, "think");
  const auto parsed = ChatTemplate::Parse("{{ messages }}").value();
  for (const ChatFormatOptions& options :
       {ChatFormatOptions{.tool_call_parser = "x"}, ChatFormatOptions{.reasoning_parser = "x"}}) {
    const auto format = LearnChatFormat(*parsed, {}, {}, options);
    ASSERT_FALSE(format.has_value());
    EXPECT_NE(format.error().message().find("known are"), std::string::npos);
  }
}

TEST(KeptSpecials, MarksPassAndOtherSpecialTokensDoNot) {
  const auto tokenizer = std::make_shared<const testing::FakeTokenizer>(
      std::vector<std::string>{"<tool_call>", "</tool_call>", "<|im_end|>", "</think>"});
  const std::set<TokenId> kept =
      SpecialsIn(*tokenizer, &DefaultToolSyntax(), FindReasoningSyntax("think"));
  EXPECT_EQ(kept, (std::set<TokenId>{256, 257, 259}));
  const auto stream =
      KeepSpecials(std::make_unique<testing::FakeDetokenizer>(tokenizer, /*skip_special=*/false),
                   tokenizer, kept);
  std::string text;
  for (const TokenId id : {256, 97, 258, 257, 259}) text += stream->Push(id).value();
  EXPECT_EQ(text + stream->Flush().value(), "<tool_call>a</tool_call></think>");
}

}  // namespace
}  // namespace tessera::text
