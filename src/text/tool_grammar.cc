// SPDX-License-Identifier: Apache-2.0
#include "text/tool_grammar.h"

#include <fmt/format.h>

#include "base/check.h"
#include "text/json_scanner.h"
#include "text/lark_text.h"
#include "text/parameter_grammar.h"

namespace tessera::text {
namespace {

/// What stands before and behind the arguments of one function's calls: rules' terms.
struct CallText {
  std::string begin;       // Literal text, name included.
  std::string begin_more;  // Terms behind it, if an id stands before the arguments.
  std::string arguments;   // Terms.
  std::string end;         // Terms, call_end included.
};

std::string PartTerm(const LarkText& lark, const CallPart& part, const std::string& name) {
  switch (part.kind) {
    case CallPart::Kind::kLiteral:
      return lark.Literal(part.text);
    case CallPart::Kind::kName:
      return lark.Literal(name);
    case CallPart::Kind::kId:
      return "/[a-zA-Z0-9]{9}/";
    case CallPart::Kind::kIndex:
      return "/[0-9]{1,3}/";
    case CallPart::Kind::kArguments:
      break;
  }
  return "";
}

CallText TextOf(const ToolSyntax& syntax, const std::string& name, const LarkText& lark) {
  CallText text;
  text.begin = syntax.call_begin;
  std::string* terms = &text.begin_more;
  bool is_literal = true;  // So far.
  for (const CallPart& part : syntax.parts) {
    if (part.kind == CallPart::Kind::kArguments) {
      terms = &text.end;
      is_literal = false;
      continue;
    }
    const bool is_text =
        part.kind == CallPart::Kind::kLiteral || part.kind == CallPart::Kind::kName;
    is_literal = is_literal && is_text;
    if (is_literal) {
      text.begin += part.kind == CallPart::Kind::kName ? name : part.text;
    } else {
      *terms += PartTerm(lark, part, name) + " ";
    }
  }
  text.end += lark.Literal(syntax.call_end);
  return text;
}

Result<std::string> ArgumentTerms(const ToolSyntax& syntax, const ToolSchema& tool,
                                  LarkText* lark) {
  if (syntax.arguments == ToolSyntax::Arguments::kParameters)
    return ParameterTerms(syntax, tool, lark);
  return lark->Json(tool.parameters);
}

}  // namespace

Result<std::optional<std::string>> ToolGrammar(const ToolSyntax& syntax,
                                               std::span<const ToolSchema> tools,
                                               const ToolGrammarOptions& options,
                                               const Tokenizer& tokenizer) {
  TESSERA_CHECK(!tools.empty());
  const std::string marker = syntax.Marker();
  if (marker.empty() && !options.needs_call && !options.text_schema.has_value())
    return std::optional<std::string>();
  LarkText lark(tokenizer);
  // Each call: what an answer's first one has behind the mark, and what a further one has in all.
  std::string first, further;
  for (size_t i = 0; i < tools.size(); ++i) {
    CallText text = TextOf(syntax, tools[i].name, lark);
    TESSERA_ASSIGN_OR_RETURN(text.arguments, ArgumentTerms(syntax, tools[i], &lark));
    const std::string body = fmt::format("body_{}", i);
    lark.Rule(body, fmt::format("{} {} {}", text.begin_more, text.arguments, text.end));
    std::string opening = syntax.section_begin + text.begin;
    while (!opening.empty() && IsJsonSpace(opening.front())) opening.erase(0, 1);
    if (!options.needs_call) opening.erase(0, marker.size());
    const char* bar = i == 0 ? "" : " | ";
    first += fmt::format("{}{} {}", bar, lark.Literal(opening), body);
    further += fmt::format("{}{} {}", bar, lark.Literal(syntax.separator + text.begin), body);
  }
  std::string calls = fmt::format("({})", first);
  if (options.several) calls += fmt::format(" ({})*", further);
  calls += " " + lark.Literal(syntax.section_end);
  std::string answer = calls;
  if (!options.needs_call && options.text_schema.has_value()) {
    answer =
        fmt::format("({} | {} {})", lark.Json(*options.text_schema), lark.Literal(marker), calls);
  } else if (!options.needs_call) {
    // Text that begins as thoughts do is thoughts.
    const std::string thoughts = options.reasoning.has_value() ? options.reasoning->begin : "";
    const std::string up_to_mark = lark.TextUpTo(marker, thoughts);
    answer = fmt::format("({}? | {} {})", lark.TextWithout(marker, thoughts), up_to_mark, calls);
  }
  const std::string thoughts = options.reasoning.has_value()
                                   ? lark.Thoughts(*options.reasoning, options.starts_reasoning)
                                   : "";
  return std::optional(lark.Source(thoughts + answer));
}

}  // namespace tessera::text
