// SPDX-License-Identifier: Apache-2.0
#include "cli/endpoint_fields.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "cli/validators.h"

#include "base/check.h"
#include "base/file.h"
#include "gateway/limits.h"
#include "gateway/spec/field_table.h"

namespace tessera::cli {
namespace {

using gateway::Field;
using gateway::FieldKind;
using gateway::FieldUse;

json::Array Split(std::string_view text) {
  json::Array list;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

/// The text as JSON where the kind is more than a text; the text itself where it is none, so that
/// the table says what was expected.
json::Value ValueOf(FieldKind kind, std::string_view text) {
  if (kind == FieldKind::kText || kind == FieldKind::kEnum || kind == FieldKind::kUrl ||
      kind == FieldKind::kQuantity)
    return json::Value(text);
  const bool is_list = kind == FieldKind::kTextList || kind == FieldKind::kEnumList;
  if (is_list && !text.starts_with('[')) return Split(text);
  auto parsed = json::Parse(text, {.max_bytes = gateway::kSpecBytesMax}, "value");
  return parsed.has_value() ? *std::move(parsed) : json::Value(text);
}

Result<std::string> ReadStdin(uint64_t bytes_max) {
  std::string text;
  char buffer[65536];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    text.append(buffer, got);
    if (text.size() > bytes_max)
      return Fail(ResourceExhausted(fmt::format("stdin has more than {} bytes", bytes_max)));
  }
  if (std::ferror(stdin) != 0) return Fail(Unavailable("stdin could not be read"));
  return text;
}

std::string Description(const Field& field) {
  std::string text(field.meaning);
  if (!field.choices.empty()) {
    std::string choices(field.choices);
    std::ranges::replace(choices, '|', ' ');
    text += fmt::format("{}({})", text.empty() ? "" : " ", choices);
  }
  return text;
}

void AddFieldFlag(CLI::App* verb, const Field& field, json::Object* body) {
  std::string names = FlagOfField(field.name);
  if (field.name == "model_name") names = "--model," + names;
  const std::string name(field.name);
  verb->add_option_function<std::string>(
          names,
          [body, name](const std::string& text) {
            auto value = ParseFieldText(name, text);
            // The check below has seen the same text.
            TESSERA_CHECK(value.has_value());
            (*body)[name] = *std::move(value);
          },
          Description(field))
      ->check(CLI::Validator(
          [name](const std::string& text) {
            const auto value = ParseFieldText(name, text);
            return value.has_value() ? std::string() : value.error().message();
          },
          ""))
      ->type_name(std::string(gateway::KindWord(field.kind)))
      ->group(field.use == FieldUse::kEngine ? "Options of the server, by vLLM's names"
                                             : "Fields of the endpoint");
}

}  // namespace

std::string FlagOfField(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

Result<json::Value> ParseFieldText(std::string_view name, std::string_view text) {
  const Field* field = gateway::FindField(name);
  TESSERA_CHECK(field != nullptr);
  json::Value value = ValueOf(field->kind, text);
  std::vector<gateway::FieldError> errors;
  if (!value.is_null()) gateway::CheckField(*field, value, &errors);
  if (value.is_null())
    return Fail(InvalidArgument(
        "null says nothing: leave the flag out, or name the field with --clear of update"));
  if (!errors.empty()) return Fail(InvalidArgument(errors.front().msg));
  return value;
}

Result<json::Object> ReadFieldFile(const std::string& path) {
  auto text =
      path == "-" ? ReadStdin(gateway::kSpecBytesMax) : ReadFile(path, gateway::kSpecBytesMax);
  if (!text.has_value()) return Fail(text.error());
  TESSERA_ASSIGN_OR_RETURN(json::Value value,
                           json::Parse(*text, {.max_bytes = gateway::kSpecBytesMax},
                                       path == "-" ? std::string_view("stdin") : path));
  if (!value.is_object())
    return Fail(
        InvalidArgument(fmt::format("{}: expected an object of fields, {{\"model_name\": ...}}",
                                    path == "-" ? "stdin" : path)));
  return std::move(value.get_object());
}

void AddFieldFlags(CLI::App* verb, json::Object* body, std::string* file, bool is_update) {
  verb->add_option("--file", *file,
                   "JSON object of fields (\"-\": stdin); flags go before what it says")
      ->check(PlainText());
  for (const Field& field : gateway::EndpointFields()) {
    if (field.name == "name" || (is_update && field.use == FieldUse::kFixed)) continue;
    AddFieldFlag(verb, field, body);
  }
}

}  // namespace tessera::cli
