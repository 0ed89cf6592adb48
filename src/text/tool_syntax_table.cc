// SPDX-License-Identifier: Apache-2.0
//
// The named forms of calls, each under the name that servers of this field use for it. Most models
// need none of these: their template teaches the form (tool_probe.h), and tool_probe_test.cc holds
// the two against each other.
#include <algorithm>
#include <iterator>

#include "text/tool_syntax.h"

namespace tessera::text {
namespace {

using Kind = CallPart::Kind;

CallPart Literal(std::string text) {
  return {Kind::kLiteral, std::move(text)};
}
CallPart Part(Kind kind) {
  return {kind, {}};
}

/// {"name": "f", "arguments": {...}}
ToolSyntax ObjectSyntax(std::string name, std::string arguments_key) {
  ToolSyntax syntax;
  syntax.name = std::move(name);
  syntax.form = ToolSyntax::Form::kObject;
  syntax.name_key = "name";
  syntax.parts = {Literal("{\"name\": \""), Part(Kind::kName),
                  Literal("\", \"" + arguments_key + "\": "), Part(Kind::kArguments), Literal("}")};
  syntax.arguments_key = std::move(arguments_key);
  return syntax;
}

ToolSyntax Hermes() {
  ToolSyntax syntax = ObjectSyntax("hermes", "arguments");
  syntax.call_begin = "<tool_call>\n";
  syntax.call_end = "\n</tool_call>";
  syntax.separator = "\n";
  return syntax;
}

ToolSyntax Llama3Json() {
  ToolSyntax syntax = ObjectSyntax("llama3_json", "parameters");
  syntax.several = false;
  return syntax;
}

/// Calls in one JSON list between marks.
ToolSyntax ListSyntax(std::string name, std::string begin, std::string end) {
  ToolSyntax syntax = ObjectSyntax(std::move(name), "arguments");
  syntax.section_begin = std::move(begin) + "[";
  syntax.separator = ", ";
  syntax.section_end = "]" + std::move(end);
  return syntax;
}

ToolSyntax NameFirst(std::string name, std::string call_begin, std::string name_end,
                     std::string call_end) {
  ToolSyntax syntax;
  syntax.name = std::move(name);
  syntax.form = ToolSyntax::Form::kNameFirst;
  syntax.call_begin = std::move(call_begin);
  syntax.parts = {Part(Kind::kName), Literal(std::move(name_end)), Part(Kind::kArguments)};
  syntax.call_end = std::move(call_end);
  return syntax;
}

ToolSyntax DeepSeek(std::string name, std::string before_name, std::string name_end,
                    std::string arguments_end) {
  ToolSyntax syntax =
      NameFirst(std::move(name), "<｜tool▁call▁begin｜>" + std::move(before_name),
                std::move(name_end), std::move(arguments_end) + "<｜tool▁call▁end｜>");
  syntax.section_begin = "<｜tool▁calls▁begin｜>";
  syntax.section_end = "<｜tool▁calls▁end｜>";
  return syntax;
}

ToolSyntax KimiK2() {
  ToolSyntax syntax = NameFirst("kimi_k2", "<|tool_call_begin|>functions.",
                                "<|tool_call_argument_begin|>", "<|tool_call_end|>");
  syntax.section_begin = "<|tool_calls_section_begin|>";
  syntax.section_end = "<|tool_calls_section_end|>";
  syntax.parts.insert(syntax.parts.begin() + 1, {Literal(":"), Part(Kind::kIndex)});
  return syntax;
}

ToolSyntax Parameters(ToolSyntax syntax, std::string begin, std::string key_end, std::string end) {
  syntax.arguments = ToolSyntax::Arguments::kParameters;
  syntax.parameter_begin = std::move(begin);
  syntax.key_end = std::move(key_end);
  syntax.parameter_end = std::move(end);
  return syntax;
}

ToolSyntax Qwen3Coder() {
  ToolSyntax syntax = Parameters(
      NameFirst("qwen3_coder", "<tool_call>\n<function=", ">", "\n</function>\n</tool_call>"),
      "\n<parameter=", ">\n", "\n</parameter>");
  syntax.separator = "\n";
  return syntax;
}

ToolSyntax Glm45() {
  ToolSyntax syntax = Parameters(NameFirst("glm45", "<tool_call>", "", "\n</tool_call>"),
                                 "\n<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>");
  syntax.separator = "\n";
  return syntax;
}

ToolSyntax MinimaxM2() {
  ToolSyntax syntax = Parameters(NameFirst("minimax_m2", "\n<invoke name=\"", "\">", "\n</invoke>"),
                                 "\n<parameter name=\"", "\">", "</parameter>");
  syntax.section_begin = "<minimax:tool_call>";
  syntax.section_end = "\n</minimax:tool_call>";
  return syntax;
}

ToolSyntax CommandR7b() {
  ToolSyntax syntax = ListSyntax("command_r7b", "<|START_ACTION|>", "<|END_ACTION|>");
  syntax.name_key = "tool_name";
  syntax.arguments_key = "parameters";
  syntax.parts = {Literal("{\"tool_call_id\": \""),
                  Part(Kind::kIndex),
                  Literal("\", \"tool_name\": \""),
                  Part(Kind::kName),
                  Literal("\", \"parameters\": "),
                  Part(Kind::kArguments),
                  Literal("}")};
  return syntax;
}

ToolSyntax Apertus() {
  ToolSyntax syntax = ListSyntax("apertus", "<|tools_prefix|>", "<|tools_suffix|>");
  syntax.form = ToolSyntax::Form::kNameAsKey;
  syntax.name_key.clear();
  syntax.arguments_key.clear();
  syntax.parts = {Literal("{\""), Part(Kind::kName), Literal("\": "), Part(Kind::kArguments),
                  Literal("}")};
  return syntax;
}

const std::vector<ToolSyntax>& Table() {
  static const std::vector<ToolSyntax> table = {
      Hermes(),
      Llama3Json(),
      ListSyntax("mistral", "[TOOL_CALLS]", ""),
      NameFirst("mistral_args", "[TOOL_CALLS]", "[ARGS]", ""),
      DeepSeek("deepseek_v3", "function<｜tool▁sep｜>", "\n```json\n", "\n```"),
      DeepSeek("deepseek_v31", "", "<｜tool▁sep｜>", ""),
      NameFirst("functionary_v3", "<function=", ">", "</function>"),
      ListSyntax("firefunction", " functools", ""),
      ListSyntax("nemotron", "<TOOLCALL>", "</TOOLCALL>"),
      ListSyntax("granite3", "<|tool_call|>", ""),
      KimiK2(),
      Qwen3Coder(),
      Glm45(),
      MinimaxM2(),
      CommandR7b(),
      Apertus(),
  };
  return table;
}

}  // namespace

const ToolSyntax& DefaultToolSyntax() {
  return Table().front();
}

const ToolSyntax* ToolSyntaxIn(std::string_view template_source) {
  const auto has = [&](const std::string& mark) {
    return template_source.find(mark) != std::string_view::npos;
  };
  // The more particular form wins: several share a mark with Hermes, Qwen's has Functionary's.
  const auto rank = [](const ToolSyntax& syntax) {
    if (&syntax == &DefaultToolSyntax()) return 1;
    return syntax.arguments == ToolSyntax::Arguments::kJson ? 2 : 3;
  };
  const ToolSyntax* found = nullptr;
  for (const ToolSyntax& syntax : Table()) {
    // A word is no mark: it may stand there for any reason.
    const std::string marker = syntax.Marker();
    const std::string& parameter = syntax.parameter_begin;
    const std::string mark = parameter.substr(std::min(parameter.find('<'), parameter.size()));
    const bool is_spelt =
        (marker.starts_with('<') || marker.starts_with('[')) && has(marker) && has(mark);
    if (is_spelt && (found == nullptr || rank(syntax) > rank(*found))) found = &syntax;
  }
  return found;
}

const ToolSyntax* FindToolSyntax(std::string_view name) {
  // Models of IBM, Qwen and Nous write what Hermes was the first to write.
  if (name == "granite" || name == "qwen" || name == "qwen25") name = "hermes";
  const auto found = std::ranges::find(Table(), name, &ToolSyntax::name);
  return found == Table().end() ? nullptr : &*found;
}

std::vector<std::string_view> ToolSyntaxNames() {
  std::vector<std::string_view> names;
  std::ranges::transform(Table(), std::back_inserter(names),
                         [](const ToolSyntax& syntax) -> std::string_view { return syntax.name; });
  return names;
}

}  // namespace tessera::text
