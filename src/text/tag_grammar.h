// SPDX-License-Identifier: Apache-2.0
//
// TagGrammar: text with structured parts, as a grammar of kind kTags. A tag is a fixed beginning, a
// content with a form of its own, and a fixed end: a tool call, a block of code. With free text,
// what the output says is open until it says a trigger; from there on it must be one of the tags
// that begin with the trigger. Text before, between and after tags holds no trigger. Special tokens
// of the vocabulary in `begin`, `end`, triggers and separator are those tokens.
//
//   TagGrammar calls{.tags = {{.begin = "<tool_call>{\"name\": \"add\", \"arguments\": ",
//                              .kind = GrammarKind::kJsonSchema, .content = schema,
//                              .end = "}</tool_call>"}},
//                    .triggers = {"<tool_call>"},
//                    .free_text = true};                       // tool_choice auto
//   auto grammar = cache.Get(GrammarKind::kTags, ToSource(calls));
//
// Without free text the output is min_tags to max_tags tags with `separator` between two of them.
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/grammar.h"

namespace tessera::text {

struct Tag {
  std::string begin;
  GrammarKind kind = GrammarKind::kJsonSchema;  // Or kRegex, kLark (a grammar with its own start).
  std::string content;                          // As Grammar::Compile takes it.
  std::string end;
};

struct TagGrammar {
  std::vector<Tag> tags;              // At least one.
  std::vector<std::string> triggers;  // With free text: each tag begins with one of them.
  bool free_text = false;
  std::string separator;
  int64_t min_tags = 0;
  std::optional<int64_t> max_tags;  // Absent: any number.
};

/// The source for GrammarKind::kTags. A schema that is no JSON stays in it as a string, which
/// Compile then refuses.
std::string ToSource(const TagGrammar& grammar);

}  // namespace tessera::text
