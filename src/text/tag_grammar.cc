// SPDX-License-Identifier: Apache-2.0
#include "text/tag_grammar.h"

#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace tessera::text {
namespace {

json::Value Content(const Tag& tag) {
  if (tag.kind == GrammarKind::kRegex) return json::Object{{"regex", tag.content}};
  if (tag.kind == GrammarKind::kLark) return json::Object{{"lark", tag.content}};
  TESSERA_CHECK(tag.kind == GrammarKind::kJsonSchema);
  auto schema = json::Parse(tag.content, {}, "schema");
  json::Value content = schema.has_value() ? *std::move(schema) : json::Value(tag.content);
  return json::Object{{"json_schema", std::move(content)}};
}

}  // namespace

std::string ToSource(const TagGrammar& grammar) {
  json::Array tags;
  for (const Tag& tag : grammar.tags)
    tags.push_back(json::Object{{"begin", tag.begin}, {"content", Content(tag)}, {"end", tag.end}});
  json::Object source{{"tags", std::move(tags)},
                      {"triggers", json::Array(grammar.triggers.begin(), grammar.triggers.end())},
                      {"free_text", grammar.free_text},
                      {"separator", grammar.separator},
                      {"min_tags", grammar.min_tags}};
  if (grammar.max_tags.has_value()) source["max_tags"] = *grammar.max_tags;
  return json::Serialize(source);
}

}  // namespace tessera::text
