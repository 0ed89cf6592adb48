// SPDX-License-Identifier: Apache-2.0
#include "text/parameter_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/call_reader.h"

namespace tessera::text {
namespace {

// What says nothing of an object but of its properties, or nothing at all.
constexpr std::array<std::string_view, 11> kObjectKeywords = {
    "type",    "properties",  "required", "additionalProperties",
    "$defs",   "definitions", "title",    "description",
    "$schema", "examples",    "default"};
// The same for a string.
constexpr std::array<std::string_view, 8> kStringKeywords = {
    "type", "enum", "const", "minLength", "maxLength", "title", "description", "default"};

Status Unenforced(const std::string& pointer) {
  return Unimplemented(
      fmt::format("{} cannot be enforced: this model writes arguments as bare text", pointer));
}

template <size_t N>
Status CheckKeywords(const json::Object& schema, const std::array<std::string_view, N>& known,
                     const std::string& pointer) {
  for (const auto& [key, value] : schema)
    if (std::ranges::find(known, std::string_view(key)) == known.end())
      return Unenforced(fmt::format("{}/{}", pointer, std::string_view(key)));
  return {};
}

int64_t LengthOr(const json::Object& schema, std::string_view key, int64_t fallback) {
  const json::Value* value = json::Find(schema, key);
  return value != nullptr && value->is_int64() ? value->get_int64() : fallback;
}

class Writer {
 public:
  Writer(const ToolSyntax& syntax, const json::Object& schema, LarkText* lark)
      : syntax_(syntax), schema_(schema), lark_(*lark) {}

  Result<std::string> Run() {
    TESSERA_RETURN_IF_ERROR(CheckKeywords(schema_, kObjectKeywords, "#"));
    const json::Value* properties = json::Find(schema_, "properties");
    if (properties == nullptr || !properties->is_object() || properties->get_object().empty())
      return Any();
    std::string terms;
    // Between two parameters stands the separator; which is the first depends on the optional ones,
    // so it is written with each, where it is more than white space in some syntax.
    for (const auto& [key, value] : properties->get_object()) {
      TESSERA_ASSIGN_OR_RETURN(const std::string one, Parameter(key, value));
      terms += IsRequired(key) ? one + " " : fmt::format("({})? ", one);
    }
    return terms;
  }

 private:
  bool IsRequired(std::string_view key) const {
    const json::Value* required = json::Find(schema_, "required");
    if (required == nullptr || !required->is_array()) return false;
    for (const json::Value& name : required->get_array())
      if (name.is_string() && std::string_view(name.get_string()) == key) return true;
    return false;
  }

  /// Of a function whose schema names no parameter.
  std::string Any() {
    if (const json::Value* more = json::Find(schema_, "additionalProperties"))
      if (more->is_bool() && !more->get_bool()) return "";
    return fmt::format("({} /[a-zA-Z0-9_]{{1,64}}/ {} {})*", lark_.Literal(Begin()),
                       lark_.Literal(syntax_.key_end),
                       lark_.BoundedTextUpTo(syntax_.parameter_end, 0, -1));
  }

  std::string Begin() const { return syntax_.parameter_separator + syntax_.parameter_begin; }

  Result<std::string> Parameter(std::string_view key, const json::Value& schema) {
    const std::string pointer = fmt::format("#/properties/{}", key);
    if (TakesOnlyText(schema)) {
      TESSERA_RETURN_IF_ERROR(CheckKeywords(schema.get_object(), kStringKeywords, pointer));
      return fmt::format("{} {}", lark_.Literal(Begin() + std::string(key) + syntax_.key_end),
                         StringValue(schema.get_object()));
    }
    const std::string& key_end =
        syntax_.json_key_end.empty() ? syntax_.key_end : syntax_.json_key_end;
    return fmt::format("{} {} {}", lark_.Literal(Begin() + std::string(key) + key_end),
                       lark_.Json(Alone(schema)), lark_.Literal(syntax_.parameter_end));
  }

  std::string StringValue(const json::Object& schema) {
    json::Array values;
    if (const json::Value* one = json::Find(schema, "const")) values.push_back(*one);
    if (const json::Value* list = json::Find(schema, "enum"); list != nullptr && list->is_array())
      values = list->get_array();
    std::string choices;
    for (const json::Value& value : values)
      if (value.is_string())
        choices +=
            fmt::format("{}{}", choices.empty() ? "" : " | ",
                        lark_.Literal(std::string(value.get_string()) + syntax_.parameter_end));
    if (!choices.empty()) return fmt::format("({})", choices);
    return lark_.BoundedTextUpTo(syntax_.parameter_end, LengthOr(schema, "minLength", 0),
                                 LengthOr(schema, "maxLength", -1));
  }

  /// A property's schema with what it may refer to.
  json::Value Alone(const json::Value& schema) const {
    json::Object alone;  // Of true, which is no object: any value.
    if (schema.is_object()) alone = schema.get_object();
    for (const char* defs : {"$defs", "definitions"})
      if (const json::Value* value = json::Find(schema_, defs)) alone[defs] = *value;
    return alone;
  }

  const ToolSyntax& syntax_;
  const json::Object& schema_;
  LarkText& lark_;
};

}  // namespace

Result<std::string> ParameterTerms(const ToolSyntax& syntax, const ToolSchema& tool,
                                   LarkText* lark) {
  const json::Object none;
  const json::Object* schema = tool.parameters.if_object();
  return Writer(syntax, schema == nullptr ? none : *schema, lark).Run();
}

}  // namespace tessera::text
