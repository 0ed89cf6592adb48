// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <string>

#include "support/scale.h"
#include "text/template_limits.h"

namespace tessera::text {
namespace {

Result<std::string> Render(const std::string& source, std::string_view request = "{}") {
  auto parsed = ChatTemplate::Parse(source);
  if (!parsed.has_value()) return Fail(StatusOf(parsed));
  return (*parsed)->RenderRequest(request, 0);
}

/// The rendered text, or the error's code and words.
std::string Shown(const std::string& source, std::string_view request = "{}") {
  const auto text = Render(source, request);
  if (text.has_value()) return *text;
  return std::string(CodeName(text.error().code())) + ": " + text.error().message();
}

Code CodeOf(const std::string& source) {
  return StatusOf(Render(source)).code();
}

TEST(ChatTemplate, ASyntaxErrorNamesTheLine) {
  const auto parsed = ChatTemplate::Parse("a\n{% if x %}");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
  EXPECT_NE(parsed.error().message().find("line 2"), std::string::npos) << parsed.error().message();
}

TEST(ChatTemplate, RaiseExceptionGivesItsOwnWordsOnly) {
  EXPECT_EQ(Shown("{{ raise_exception('No: ' ~ [1]) }}"), "INVALID_ARGUMENT: No: [1]");
}

TEST(ChatTemplate, RequestsKeepKeyOrderAndNumbers) {
  EXPECT_EQ(
      Shown("{{ d }}", R"({"vars": {"d": {"z": 1.0, "a": 18446744073709551617, "m": null}}})"),
      "{'z': 1.0, 'a': 18446744073709551617, 'm': None}");
}

TEST(ChatTemplate, AnUnknownMemberOfARequestIsRefused) {
  EXPECT_NE(Shown("x", R"({"message": []})").find("unknown member 'message'"), std::string::npos);
  EXPECT_NE(Shown("x", R"({"messages": [], "vars": {"messages": 1}})").find("twice"),
            std::string::npos);
}

TEST(ChatTemplate, AbsentToolsAndDocumentsAreNone) {
  EXPECT_EQ(Shown("{{ tools }} {{ documents }} {{ add_generation_prompt }} {{ messages }}"),
            "None None False ");
}

TEST(TemplateLimits, SourceLength) {
  const std::string full(kMaxTemplateBytes, 'x');
  EXPECT_TRUE(ChatTemplate::Parse(full.substr(1)).has_value());
  EXPECT_TRUE(ChatTemplate::Parse(full).has_value());
  EXPECT_EQ(StatusOf(ChatTemplate::Parse(full + "x")).code(), Code::kResourceExhausted);
}

TEST(TemplateLimits, RenderedBytes) {
  const std::string half = std::to_string(kMaxRenderedBytes / 2);
  const std::string all = "{% set s = 'x' * " + half + " %}{{ s }}{{ s[1:] }}";
  EXPECT_EQ(Render(all)->size(), kMaxRenderedBytes - 1);
  EXPECT_EQ(Render(all + "a")->size(), kMaxRenderedBytes);
  EXPECT_EQ(CodeOf(all + "ab"), Code::kResourceExhausted);
}

TEST(TemplateLimits, BytesOfOneValue) {
  const auto repeat = [](uint64_t n) { return "{{ ('x' * " + std::to_string(n) + ") | length }}"; };
  EXPECT_EQ(CodeOf(repeat(kMaxTemplateValueBytes - 1)), Code::kOk);
  EXPECT_EQ(CodeOf(repeat(kMaxTemplateValueBytes)), Code::kOk);
  EXPECT_EQ(CodeOf(repeat(kMaxTemplateValueBytes + 1)), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf("{{ 'x' * 10 ** 30 }}"), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf("{{ [0] * 10 ** 9 }}"), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf("{{ '%0999999999d' % 1 }}"), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf("{{ 'x'.center(10 ** 12) }}"), Code::kResourceExhausted);
}

TEST(TemplateLimits, Range) {
  const auto range = [](uint64_t n) { return "{{ range(" + std::to_string(n) + ") | length }}"; };
  EXPECT_EQ(CodeOf(range(kMaxTemplateRange - 1)), Code::kOk);
  EXPECT_EQ(CodeOf(range(kMaxTemplateRange)), Code::kOk);
  EXPECT_EQ(CodeOf(range(kMaxTemplateRange + 1)), Code::kInvalidArgument);
}

TEST(TemplateLimits, NestingOfValues) {
  const auto nest = [](uint64_t n) {
    return "{% set ns = namespace(x=[]) %}{% for i in range(" + std::to_string(n - 1) +
           ") %}{% set ns.x = [ns.x] %}{% endfor %}ok";
  };
  EXPECT_EQ(CodeOf(nest(kMaxTemplateNesting - 1)), Code::kOk);
  EXPECT_EQ(CodeOf(nest(kMaxTemplateNesting)), Code::kOk);
  EXPECT_EQ(CodeOf(nest(kMaxTemplateNesting + 1)), Code::kResourceExhausted);
}

TEST(TemplateLimits, Steps) {
  // 3 steps an inner turn, 7 more an outer one, 2 an emitted text, 4 for the outer loop itself.
  const auto code_of = [](uint64_t outer, uint64_t steps) {
    constexpr uint64_t kInner = 3330;
    const uint64_t loops = 4 + outer * (7 + 3 * kInner);
    EXPECT_EQ((steps - loops) % 2, 0u);
    std::string source = "{% for a in range(" + std::to_string(outer) + ") %}{% for b in range(" +
                         std::to_string(kInner) + ") %}{% endfor %}{% endfor %}";
    for (uint64_t left = steps - loops; left > 0; left -= 2) source += "x{##}";
    return CodeOf(source);
  };
  EXPECT_EQ(code_of(999, kMaxTemplateSteps - 1), Code::kOk);
  EXPECT_EQ(code_of(1000, kMaxTemplateSteps), Code::kOk);
  EXPECT_EQ(code_of(999, kMaxTemplateSteps + 1), Code::kResourceExhausted);
}

TEST(TemplateLimits, StepsEndALoop) {
  const std::string loop =
      "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}";
  EXPECT_EQ(CodeOf(loop), Code::kResourceExhausted);
}

TEST(TemplateLimits, DoublingEndsBeforeMemoryDoes) {
  const std::string loop = "{% set ns = namespace(s='x') %}{% for a in range(60) %}";
  EXPECT_EQ(CodeOf(loop + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"), Code::kResourceExhausted);
  EXPECT_EQ(
      CodeOf(loop + "{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}{% endfor %}"),
      Code::kResourceExhausted);
}

TEST(TemplateLimits, SharedListsCountEveryTimeTheyAreRead) {
  const std::string shared =
      "{% set ns = namespace(s=[1]) %}{% for a in range(60) %}"
      "{% set ns.s = [ns.s, ns.s] %}{% endfor %}";
  EXPECT_EQ(CodeOf(shared + "{{ ns.s }}"), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf(shared + "{{ ns.s | tojson }}"), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf(shared + "{% set t = ns.s %}{{ [t] == [[ns.s[0], ns.s[1]]] }}"),
            Code::kResourceExhausted);
}

TEST(TemplateLimits, RecursionEndsInsideTheStack) {
  EXPECT_EQ(CodeOf("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}"), Code::kResourceExhausted);
  EXPECT_EQ(CodeOf("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
            Code::kResourceExhausted);
  const std::string open(5000, '(');
  EXPECT_EQ(CodeOf("{{ " + open + "1" + std::string(5000, ')') + " }}"), Code::kResourceExhausted);
}

TEST(TemplateLimits, ANamespaceCannotHoldItself) {
  EXPECT_EQ(CodeOf("{% set ns = namespace() %}{% set ns.me = [ns] %}"), Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::text
