// SPDX-License-Identifier: Apache-2.0
#include "text/lark_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "text/json_scanner.h"

namespace tessera::text {
namespace {

/// Around the number of a part. No literal holds it: JSON text and Escaped() write it otherwise.
constexpr char kPartMark = '\x01';

/// `text` as a part of a regular expression between slashes: whatever could mean something there is
/// written as a number.
std::string Escaped(std::string_view text) {
  std::string regex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == ' ' || byte >= 0x80;
    regex += is_plain ? std::string(1, c) : fmt::format("\\x{{{:X}}}", byte);
  }
  return regex;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsJsonSpace(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

LarkText::LarkText(const Tokenizer& tokenizer) {
  for (const TokenId id : tokenizer.SpecialIds()) {
    std::string name = tokenizer.TokenText(id);
    if (!name.empty()) specials_.emplace_back(std::move(name), id);
  }
  std::ranges::stable_sort(
      specials_, [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

bool LarkText::HasSpecial(std::string_view text) const {
  return std::ranges::any_of(specials_, [&](const auto& special) {
    return text.find(special.first) != std::string_view::npos;
  });
}

std::string LarkText::Literal(std::string_view text) const {
  std::string terms;
  const auto add = [&terms](std::string term) {
    if (!terms.empty()) terms += ' ';
    terms += term;
  };
  std::string plain;
  while (!text.empty()) {
    const auto special = std::ranges::find_if(
        specials_, [&](const auto& candidate) { return text.starts_with(candidate.first); });
    if (special == specials_.end()) {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    if (!plain.empty()) add(json::Serialize(json::Value(std::exchange(plain, {}))));
    add(fmt::format("<[{}]>", special->second));
    text.remove_prefix(special->first.size());
  }
  if (!plain.empty()) add(json::Serialize(json::Value(plain)));
  return terms.empty() ? "\"\"" : terms;
}

std::string LarkText::NotFirst(std::string_view first) const {
  // Text cannot spell a special token.
  if (first.empty() || HasSpecial(first)) return "";
  return fmt::format(" & ~/[ \\n\\r\\t]*{}(?s:.*)/", Escaped(first));
}

std::string LarkText::TextUpTo(std::string_view mark, std::string_view not_first) {
  if (HasSpecial(mark)) return BoundedTextUpTo(mark, 0, -1);
  const std::string terminal = FreshName("UPTO");
  Rule(terminal, fmt::format("/(?s:.*){}/{}", Escaped(mark), NotFirst(not_first)));
  return Lazy(terminal);
}

std::string LarkText::Lazy(const std::string& terminal) {
  std::string name = FreshName("upto");
  Rule(name + "[lazy]", terminal);
  return name;
}

std::string LarkText::TextBetween(std::string_view begin, std::string_view end) {
  if (HasSpecial(begin) || HasSpecial(end)) return Literal(begin) + " " + TextUpTo(end);
  // One lexeme: whether a text begins like this is clear before it is read.
  std::string name = FreshName("between");
  Rule(name + "[lazy]", fmt::format("/[ \\n\\r\\t]*{}(?s:.*){}/", Escaped(begin), Escaped(end)));
  return name;
}

std::string LarkText::BoundedTextUpTo(std::string_view mark, int64_t min, int64_t max) {
  const auto repeated = [max](int64_t least) {
    return max < 0 ? fmt::format("(?s:.{{{},}})", least)
                   : fmt::format("(?s:.{{{},{}}})", least, std::max(max, least));
  };
  if (HasSpecial(mark)) {
    // Text cannot spell a special token. No lexeme is empty.
    const std::string any = FreshName("ANY");
    Rule(any, fmt::format("/{}/", repeated(std::max<int64_t>(min, 1))));
    std::string name = FreshName("upto");
    Rule(name, fmt::format("{}{} {}", any, min == 0 ? "?" : "", Literal(mark)));
    return name;
  }
  // Readers take the mark with any white space before it, so the text must not hold it at all.
  const std::string bare = Escaped(Trimmed(mark));
  const std::string terminal = FreshName("UPTO");
  Rule(terminal, fmt::format("/{}{}/ & ~/(?s:.*){}(?s:.+)/", repeated(min), Escaped(mark), bare));
  return Lazy(terminal);
}

std::string LarkText::TextWithout(std::string_view mark, std::string_view not_first) {
  std::string name = FreshName("TEXT");
  const std::string restriction = NotFirst(not_first);
  if (HasSpecial(mark)) {
    Rule(name, "/(?s:.+)/" + restriction);
  } else {
    Rule(name, fmt::format("/(?s:.+)/ & ~/(?s:.*){}(?s:.*)/{}", Escaped(mark), restriction));
  }
  return name;
}

void LarkText::Rule(std::string_view name, std::string_view body) {
  rules_ += fmt::format("{}: {}\n", name, body);
}

std::string LarkText::Json(const json::Value& schema) {
  return Add(json::Object{
      {"json_schema", schema.is_null() ? json::Value(json::Object{{"type", "object"}}) : schema}});
}

std::string LarkText::Form(GrammarKind kind, std::string_view source) {
  const auto parsed = [source] {
    auto value = json::Parse(source, {}, "form");
    // What is no JSON is refused where it is compiled.
    return value.has_value() ? *std::move(value) : json::Value(source);
  };
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return Add(json::Object{{"json_schema", parsed()}});
    case GrammarKind::kRegex:
      return Add(json::Object{{"regex", source}});
    case GrammarKind::kLark:
      return Add(json::Object{{"lark", source}});
    case GrammarKind::kChoices:
      return Add(json::Object{{"choices", source}});
    case GrammarKind::kTags:
      return Add(json::Object{{"tags", source}});
    case GrammarKind::kLarkParts:
      break;
  }
  TESSERA_CHECK(false);
  return "";
}

std::string LarkText::Thoughts(const ReasoningSyntax& syntax, bool is_open) {
  const std::string space = "(/[ \\n\\r\\t]{1,8}/)? ";
  if (is_open || syntax.is_implied) return TextUpTo(syntax.end) + " " + space;
  return fmt::format("({} {})? ", TextBetween(syntax.begin, syntax.end), space);
}

std::string LarkText::Add(json::Value part) {
  forms_.push_back(std::move(part));
  return fmt::format("{0}{1}{0}", kPartMark, forms_.size() - 1);
}

std::string LarkText::Source(std::string_view start) const {
  const std::string text = fmt::format("start: {}\n{}", start, rules_);
  json::Array parts;
  std::string_view rest = text;
  while (true) {
    const size_t begin = rest.find(kPartMark);
    if (begin == std::string_view::npos) break;
    const size_t end = rest.find(kPartMark, begin + 1);
    const std::string number(rest.substr(begin + 1, end - begin - 1));
    parts.push_back(json::Value(rest.substr(0, begin)));
    parts.push_back(forms_[std::stoul(number)]);
    rest.remove_prefix(end + 1);
  }
  parts.push_back(json::Value(rest));
  return json::Serialize(parts);
}

std::string LarkText::FreshName(std::string_view stem) {
  return fmt::format("{}_{}", stem, count_++);
}

}  // namespace tessera::text
