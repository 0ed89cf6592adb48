// SPDX-License-Identifier: Apache-2.0
//
// The reference page's table of request fields, made from the table that validates them.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/openai/schema.h"
#include "support/golden.h"

namespace tessera::testing {

/// Names of routes by their bit.
using RouteNames = std::vector<std::pair<unsigned, std::string_view>>;

namespace field_table_internal {

inline std::string_view KindText(server::openai::Kind kind) {
  using enum server::openai::Kind;
  switch (kind) {
    case kString:
      return "string";
    case kBool:
      return "boolean";
    case kInteger:
      return "integer";
    case kNumber:
      return "number";
    case kObject:
      return "object";
    case kArray:
      return "array";
    case kStringOrArray:
      return "string or array";
    case kStringOrObject:
      return "string or object";
    case kAny:
      return "any";
  }
  return "";
}

inline std::string_view UseText(server::openai::Use use) {
  using enum server::openai::Use;
  return use == kIgnored ? " No effect here." : use == kRefused ? " Refused until built." : "";
}

inline std::string TypeText(const server::openai::Field& field) {
  const std::string kind(KindText(field.kind));
  if (field.low == 0 && field.high == 0) return kind;
  // A double cannot spell the ends of the 64-bit range.
  constexpr double kExact = 9007199254740992.0;
  if (field.high > kExact) return kind + ", any of 64 bits, signed or not";
  if (field.kind == server::openai::Kind::kInteger)
    return fmt::format("{}, {} to {}", kind, static_cast<int64_t>(field.low),
                       static_cast<int64_t>(field.high));
  return fmt::format("{}, {} to {}", kind, field.low, field.high);
}

}  // namespace field_table_internal

/// Compares (or rewrites) the block `name` of docs/http.md.
inline void ExpectFieldTable(std::span<const server::openai::Field> fields,
                             const RouteNames& routes, std::string_view name) {
  std::string table = "| field | routes | type | meaning |\n|---|---|---|---|\n";
  for (const server::openai::Field& field : fields) {
    std::string where;
    for (const auto& [bit, route] : routes)
      if ((field.apis & bit) != 0) where += (where.empty() ? "" : ", ") + std::string(route);
    table += fmt::format("| `{}` | {} | {} | {}{} |\n", field.name, where,
                         field_table_internal::TypeText(field), field.meaning,
                         field_table_internal::UseText(field.use));
  }
  ExpectDocumentBlock(table, "docs/http.md", name);
}

}  // namespace tessera::testing
