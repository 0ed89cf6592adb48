// SPDX-License-Identifier: Apache-2.0
//
// models.toml, by toml++: the one file that includes it, since it is heavy.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include "gateway/models/model_table.h"

namespace tessera::gateway {

Result<std::map<std::string, std::string, std::less<>>> ParseAliases(std::string_view text,
                                                                     std::string_view where) {
  const auto fail = [&](const toml::source_position& at, std::string_view what) {
    return Fail(InvalidArgument(fmt::format("{}:{}:{}: {}", where, at.line, at.column, what)));
  };
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return fail(parsed.error().source().begin, parsed.error().description());
  std::map<std::string, std::string, std::less<>> aliases;
  for (const auto& [key, node] : parsed.table()) {
    const auto* models = node.as_table();
    if (key.str() != "models" || models == nullptr)
      return fail(node.source().begin, "expected only the table [models]");
    for (const auto& [alias, target] : *models) {
      const auto* value = target.as_string();
      if (value == nullptr || value->get().empty())
        return fail(target.source().begin,
                    fmt::format("{}: expected a text: a repository, path or bundle", alias.str()));
      aliases.emplace(alias.str(), value->get());
    }
  }
  return aliases;
}

}  // namespace tessera::gateway
