// SPDX-License-Identifier: Apache-2.0
#include "gateway/openapi/field_reference.h"

#include <fmt/format.h>

#include <string_view>

#include "gateway/limits.h"
#include "gateway/openapi/operations.h"
#include "gateway/spec/assign_field.h"

namespace tessera::gateway::openapi {
namespace {

std::string NumberText(double value) {
  constexpr double kExact = 9007199254740992.0;
  if (value == kExact) return "2^53";
  if (value == -kExact) return "-2^53";
  return fmt::format("{}", value);
}

std::string ChoicesText(const Field& field) {
  std::string text;
  for (const std::string_view choice : Choices(field))
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", choice);
  return text;
}

bool IsRequired(const Field& field) {
  return field.use == FieldUse::kRequired || field.name == "name";
}

std::string Rows(bool of_engine) {
  std::string table =
      "| field | type and rule | default | effect |\n"
      "|---|---|---|---|\n";
  for (const Field& field : EndpointFields()) {
    if ((field.use == FieldUse::kEngine) != of_engine) continue;
    const std::string effect = EffectText(field);
    table += fmt::format("| `{}` | {} | {} | {}{}{} |\n", field.name, RuleText(field),
                         DefaultText(field), field.meaning, effect.empty() ? "" : " ", effect);
  }
  return table;
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c != '`') {
      out += c;
    }
  }
  return out;
}

constexpr std::string_view kPageHead =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tessera gateway</title>"
    "<style>body{font:16px sans-serif;max-width:75em;margin:2em auto;padding:0 1em}"
    "td,th{text-align:left;vertical-align:top;padding:.2em .8em .2em 0}</style>"
    "<h1>Tessera gateway</h1><p>The same for programs: <a href=\"/openapi.json\">openapi.json</a>."
    "</p>";

}  // namespace

std::string RuleText(const Field& field) {
  const std::string word(KindWord(field.kind));
  switch (field.kind) {
    case FieldKind::kText:
      return fmt::format("{}, {} to {} bytes", word, field.low,
                         field.high == 0 ? static_cast<double>(kTextBytesMax) : field.high);
    case FieldKind::kInteger:
    case FieldKind::kNumber:
      if (field.low == 0 && field.high == 0) return word;
      return fmt::format("{}, {} to {}", word, NumberText(field.low), NumberText(field.high));
    case FieldKind::kEnum:
      return "one of " + ChoicesText(field);
    case FieldKind::kEnumList:
      return "list of " + ChoicesText(field);
    case FieldKind::kTextList:
      return "list of str";
    case FieldKind::kObject:
      return field.high > 0 ? fmt::format("object, at most {} members", field.high) : word;
    case FieldKind::kQuantity:
      return "amount: 2, `\"500m\"`, `\"40Gi\"`";
    case FieldKind::kUrl:
      return "http or https URL";
    case FieldKind::kBool:
    case FieldKind::kAny:
      return word;
  }
  return word;
}

std::string DefaultText(const Field& field) {
  if (IsRequired(field)) return "required";
  if (field.use == FieldUse::kEngine) return "-";
  const json::Value value = FieldValue(field, EndpointSpec());
  const bool is_nothing = value.is_null() || (value.is_array() && value.get_array().empty());
  return is_nothing ? "-" : fmt::format("`{}`", json::Serialize(value));
}

std::string EffectText(const Field& field) {
  if (field.effect != FieldEffect::kNone) return {};
  return field.unmet.empty()
             ? std::string("Has no effect, and a warning says so.")
             : fmt::format("Has no effect, and a warning says so: {}.", field.unmet);
}

std::string FieldReference() {
  return Rows(false) + "\nOptions of the inference server, by vLLM's names:\n\n" + Rows(true);
}

std::string ReferencePage() {
  std::string page(kPageHead);
  page += "<h2>Routes</h2><table>";
  for (const Operation& operation : Operations())
    page += fmt::format("<tr><td>{}<td><code>{}</code><td>{}", operation.method,
                        Escaped(operation.pattern), Escaped(operation.summary));
  page +=
      "</table><h2>Fields of an endpoint</h2><table><tr><th>field<th>type and rule<th>default"
      "<th>effect";
  for (const Field& field : EndpointFields())
    page += fmt::format("<tr><td><code>{}</code><td>{}<td>{}<td>{} {}", field.name,
                        Escaped(RuleText(field)), Escaped(DefaultText(field)),
                        Escaped(field.meaning), Escaped(EffectText(field)));
  return page + "</table></html>\n";
}

}  // namespace tessera::gateway::openapi
