// SPDX-License-Identifier: Apache-2.0
#include "server/openai/schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "support/golden.h"

namespace tessera::server::openai {
namespace {

std::string_view KindText(Kind kind) {
  switch (kind) {
    case Kind::kString:
      return "string";
    case Kind::kBool:
      return "boolean";
    case Kind::kInteger:
      return "integer";
    case Kind::kNumber:
      return "number";
    case Kind::kObject:
      return "object";
    case Kind::kArray:
      return "array";
    case Kind::kStringOrArray:
      return "string or array";
    case Kind::kAny:
      return "any";
  }
  return "";
}

std::string Routes(unsigned apis) {
  std::string text;
  const auto add = [&](unsigned api, const char* name) {
    if ((apis & api) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(kCompletions, "completions");
  add(kChat, "chat");
  add(kTokenize, "tokenize");
  add(kDetokenize, "detokenize");
  return text;
}

std::string_view UseText(Use use) {
  switch (use) {
    case Use::kUsed:
      return "";
    case Use::kIgnored:
      return " No effect here.";
    case Use::kRefused:
      return " Refused until built.";
  }
  return "";
}

std::string TypeText(const Field& field) {
  const std::string kind(KindText(field.kind));
  if (field.low == 0 && field.high == 0) return kind;
  // A double cannot spell the ends of the 64-bit range.
  constexpr double kExact = 9007199254740992.0;
  if (field.high > kExact) return kind + ", any of 64 bits, signed or not";
  if (field.kind == Kind::kInteger)
    return fmt::format("{}, {} to {}", kind, static_cast<int64_t>(field.low),
                       static_cast<int64_t>(field.high));
  return fmt::format("{}, {} to {}", kind, field.low, field.high);
}

TEST(Schema, TheReferencePageListsEveryField) {
  std::string table = "| field | routes | type | meaning |\n|---|---|---|---|\n";
  for (const Field& field : RequestFields()) {
    const std::string type = TypeText(field);
    table += fmt::format("| `{}` | {} | {} | {}{} |\n", field.name, Routes(field.apis), type,
                         field.meaning, UseText(field.use));
  }
  testing::ExpectDocumentBlock(table, "docs/http.md", "fields");
}

}  // namespace
}  // namespace tessera::server::openai
