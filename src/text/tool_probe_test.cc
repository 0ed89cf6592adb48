// SPDX-License-Identifier: Apache-2.0
//
// What the chat templates of real models teach.
#include "text/tool_probe.h"

#include <gtest/gtest.h>

#include "support/fake_text.h"
#include "support/fixtures.h"
#include "text/fixture_templates.h"

namespace tessera::text {
namespace {

const std::vector<std::string> kEnds = {"<|eom_id|>", "<|eot_id|>", "<|im_end|>",
                                        "<|call|>",   "<|EOS|>",    "<｜end▁of▁sentence｜>"};

ToolProbe Probe(std::string_view source, const json::Object& vars) {
  const auto parsed = ChatTemplate::Parse(source);
  EXPECT_TRUE(parsed.has_value());
  return ProbeTools(**parsed, vars, kEnds);
}

/// A syntax without what only says how it is written, white space and the order of keys.
std::string Shape(const ToolSyntax& syntax) {
  std::string shape;
  for (const std::string& text :
       {syntax.section_begin, syntax.call_begin, syntax.name_key, syntax.arguments_key,
        syntax.parameter_begin, syntax.key_end, syntax.parameter_end, syntax.call_end,
        syntax.separator, syntax.section_end})
    for (const char c : text + "|")
      if (c != ' ' && c != '\n') shape += c;
  for (const CallPart& part : syntax.parts)
    if (!syntax.IsObject() || part.kind == CallPart::Kind::kName)
      for (const char c : part.kind == CallPart::Kind::kLiteral
                              ? part.text
                              : std::to_string(static_cast<int>(part.kind)))
        if (c != ' ' && c != '\n') shape += c;
  return shape;
}

struct Expected {
  const char* syntax;  // Of the table; "" for a form of its own, "-" for none.
  bool shows_tools;
  bool takes_system = true;
};
const std::map<std::string, Expected> kExpected = {
    {"Apertus-8B-Instruct", {"apertus", true}},
    {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", {"command_r7b", true}},
    {"GLM-4.6", {"glm45", true}},
    {"LFM2-8B-A1B", {"-", true}},
    {"MiniMax-M2", {"minimax_m2", true}},
    {"Mistral-Small-3.2-24B-Instruct-2506", {"", true}},
    {"NVIDIA-Nemotron-Nano-v2", {"nemotron", true}},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", {"hermes", true}},
    {"Qwen-QwQ-32B", {"hermes", true}},
    {"Qwen-Qwen2.5-7B-Instruct", {"hermes", true}},
    {"Qwen3.5-4B", {"qwen3_coder", true}},
    {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", {"deepseek_v3", false}},
    {"deepseek-ai-DeepSeek-V3.1", {"deepseek_v31", false}},
    {"deepseek_v3", {"deepseek_v3", false}},
    {"fireworks-ai-llama-3-firefunction-v2", {"-", false, false}},
    {"gemma3", {"-", false}},
    {"google-gemma-2-2b-it", {"-", false, false}},
    {"google-gemma-4-31B-it", {"-", true}},
    {"ibm-granite-granite-4.0", {"hermes", true}},
    {"llama3", {"-", false}},
    {"llama3_1", {"-", false}},
    {"meetkai-functionary-medium-v3.1", {"functionary_v3", true}},
    {"meta-llama-Llama-3.1-8B-Instruct", {"llama3_json", true}},
    {"meta-llama-Llama-3.2-3B-Instruct", {"llama3_json", true}},
    {"meta-llama-Llama-3.3-70B-Instruct", {"llama3_json", true}},
    {"microsoft-Phi-3.5-mini-instruct", {"-", false}},
    {"mistralai-Mistral-Nemo-Instruct-2407", {"mistral", true}},
    {"moonshotai-Kimi-K2", {"kimi_k2", true}},
    {"openai-gpt-oss-120b", {"", true}},
    {"qwen3", {"hermes", true}},
    {"smollm2", {"-", false}},
};

TEST(ToolProbe, EveryFamilyTeachesItsSyntax) {
  const auto& templates = FixtureTemplates();
  EXPECT_EQ(templates.size(), kExpected.size());
  for (const auto& [name, source] : templates) {
    SCOPED_TRACE(name);
    const Expected& expected = kExpected.at(name);
    const ToolProbe probe = Probe(source.source, source.vars);
    EXPECT_EQ(probe.shows_tools, expected.shows_tools);
    EXPECT_EQ(probe.takes_system, expected.takes_system);
    EXPECT_EQ(probe.needs_list, name.starts_with("NousResearch"));
    EXPECT_EQ(probe.syntax.has_value(), std::string_view(expected.syntax) != "-");
    EXPECT_EQ(probe.reason.empty(), probe.syntax.has_value());
    if (!probe.syntax.has_value() || *expected.syntax == '\0') continue;
    const ToolSyntax* named = FindToolSyntax(expected.syntax);
    ASSERT_NE(named, nullptr);
    EXPECT_EQ(Shape(*probe.syntax), Shape(*named));
    EXPECT_EQ(probe.syntax->form, named->form);
    EXPECT_EQ(probe.syntax->arguments, named->arguments);
    EXPECT_EQ(probe.syntax->several, named->several);
    EXPECT_EQ(probe.syntax->Marker(), named->Marker());
  }
}

TEST(ToolProbe, LearnsWhatTheHistoryMustLookLike) {
  const auto& templates = FixtureTemplates();
  const FixtureTemplate& deepseek = templates.at("deepseek_v3");
  const ToolProbe probe = Probe(deepseek.source, deepseek.vars);
  EXPECT_TRUE(probe.syntax->history_arguments_as_text);
  EXPECT_TRUE(probe.syntax->history_content_as_null);
  const FixtureTemplate& qwen = templates.at("qwen3");
  const ToolProbe plain = Probe(qwen.source, qwen.vars);
  EXPECT_FALSE(plain.syntax->history_arguments_as_text);
  EXPECT_FALSE(plain.syntax->history_content_as_null);
}

TEST(ToolProbe, LearnsIdsAndNumbersOfCalls) {
  const auto& templates = FixtureTemplates();
  const auto kinds = [&](const char* name) {
    const FixtureTemplate& source = templates.at(name);
    std::vector<CallPart::Kind> found;
    const ToolProbe probe = Probe(source.source, source.vars);
    for (const CallPart& part : probe.syntax->parts)
      if (part.kind != CallPart::Kind::kLiteral) found.push_back(part.kind);
    return found;
  };
  using Kind = CallPart::Kind;
  EXPECT_EQ(kinds("mistralai-Mistral-Nemo-Instruct-2407"),
            (std::vector<Kind>{Kind::kName, Kind::kArguments, Kind::kId}));
  EXPECT_EQ(kinds("Mistral-Small-3.2-24B-Instruct-2506"),
            (std::vector<Kind>{Kind::kName, Kind::kId, Kind::kArguments}));
  EXPECT_EQ(kinds("moonshotai-Kimi-K2"),
            (std::vector<Kind>{Kind::kName, Kind::kIndex, Kind::kArguments}));
  EXPECT_EQ(kinds("CohereForAI-c4ai-command-r7b-12-2024-tool_use"),
            (std::vector<Kind>{Kind::kIndex, Kind::kName, Kind::kArguments}));
}

TEST(ToolProbe, LearnsAnotherMarkBeforeValuesThatAreNoStrings) {
  const std::string source = testing::ReadAll(
      testing::TestData("llama_cpp_models/templates/deepseek-ai-DeepSeek-V3.2.jinja"));
  const ToolProbe probe = Probe(source, {{"bos_token", "<|BOS|>"}});
  ASSERT_TRUE(probe.syntax.has_value()) << probe.reason;
  EXPECT_EQ(probe.syntax->key_end, "\" string=\"true\">");
  EXPECT_EQ(probe.syntax->json_key_end, "\" string=\"false\">");
}

TEST(ToolProbe, ASourceMaySpellANamedForm) {
  const auto in = [](const char* file) {
    const ToolSyntax* syntax = ToolSyntaxIn(
        testing::ReadAll(testing::TestData(std::string("llama_cpp_models/templates/") + file)));
    return syntax == nullptr ? "" : syntax->name;
  };
  EXPECT_EQ(in("Kimi-K2-Thinking.jinja"), "kimi_k2");
  EXPECT_EQ(in("ibm-granite-granite-3.3-2B-Instruct.jinja"), "granite3");
  EXPECT_EQ(in("Qwen3-Coder.jinja"), "qwen3_coder");
  EXPECT_EQ(in("google-gemma-2-2b-it.jinja"), "");
  EXPECT_EQ(ToolSyntaxIn("within <tool_call> tags")->name, "hermes");
}

TEST(ToolProbe, ATemplateThatFailsTeachesNothing) {
  const ToolProbe probe = Probe("{{ raise_exception('no') }}", {});
  EXPECT_FALSE(probe.syntax.has_value());
  EXPECT_FALSE(probe.shows_tools);
  EXPECT_FALSE(probe.takes_system);
  EXPECT_NE(probe.reason, "");
}

}  // namespace
}  // namespace tessera::text
