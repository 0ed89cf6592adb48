// SPDX-License-Identifier: Apache-2.0
//
// models.toml, by toml++: the one file that includes it, since it is heavy.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "gateway/models/model_table.h"

namespace tessera::gateway {
namespace {

toml::source_position PositionOf(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0.
  return {static_cast<toml::source_index>(1 + std::ranges::count(before, '\n')),
          static_cast<toml::source_index>(1 + at - line_begin)};
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
}

bool BeginsKey(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '"' || c == '\'';
}

/// Behind the text in quotes that begins at `at`, or the end.
size_t EndOfText(std::string_view text, size_t at) {
  const std::string quote(text.substr(at, 1)), three = quote + quote + quote;
  const bool is_long = text.substr(at).starts_with(three);
  const std::string_view end = is_long ? std::string_view(three) : std::string_view(quote);
  for (at += end.size(); at < text.size(); ++at) {
    if (IsControl(text[at])) return at;
    if (text.substr(at).starts_with(end)) return at + end.size();
    if (!is_long && text[at] == '\n') return at;
    if (text[at] == '\\' && quote == "\"") ++at;
  }
  return text.size();
}

/// Where the library (3.3) does what it likes instead of saying what is wrong: at control
/// characters; at letters beyond ASCII outside of texts and comments; at a table's header without a
/// name. Lines of an array that look like such a header are taken for one: this file has no arrays.
std::optional<size_t> FindWhatIsNotSaid(std::string_view text) {
  bool is_line_begin = true;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (IsControl(c) || static_cast<unsigned char>(c) > 0x7f) return i;
    if (is_line_begin && c == '[') {
      size_t key = i + 1;
      if (key < text.size() && text[key] == '[') ++key;
      key = std::min(text.find_first_not_of(" \t", key), text.size());
      if (key == text.size() || !BeginsKey(text[key])) return key;
    }
    is_line_begin = c == '\n' || (is_line_begin && (c == ' ' || c == '\t'));
    if (c == '"' || c == '\'') {
      i = EndOfText(text, i);
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n' && !IsControl(text[i])) ++i;
    } else {
      ++i;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::map<std::string, std::string, std::less<>>> ParseAliases(std::string_view text,
                                                                     std::string_view where) {
  const auto fail = [&](const toml::source_position& at, std::string_view what) {
    return Fail(InvalidArgument(fmt::format("{}:{}:{}: {}", where, at.line, at.column, what)));
  };
  if (const auto at = FindWhatIsNotSaid(text); at.has_value())
    return fail(PositionOf(text, *at),
                "expected a name; outside of quotes letters of ASCII, nowhere control characters");
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
