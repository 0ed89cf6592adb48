// SPDX-License-Identifier: Apache-2.0
#include "server/openai/output_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "text/tag_grammar.h"

namespace tessera::server::openai {
namespace {

using MaybeForm = ApiResult<std::optional<OutputForm>>;
using text::GrammarKind;

std::unexpected<ApiError> Bad(std::string_view field, std::string_view where, std::string what) {
  return std::unexpected(BadField(field, fmt::format("{} {}", where, what)));
}

/// Members of an object that this server does not know become warnings.
void WarnUnknown(const json::Object& object, std::span<const std::string_view> known,
                 std::string_view where, std::vector<Warning>* warnings) {
  for (const auto& [key, value] : object)
    if (!value.is_null() && std::ranges::find(known, std::string_view(key)) == known.end())
      AddWarning({"unknown_field", std::string(where.substr(0, where.find('.'))),
                  fmt::format("the field \"{}.{:.100}\" is not known and was ignored", where,
                              std::string_view(key))},
                 warnings);
}

/// A schema as clients give it: an object, or (vLLM) its JSON as a string.
MaybeForm ReadSchema(std::string_view field, std::string_view where, const json::Value& schema) {
  if (schema.is_object())
    return OutputForm{GrammarKind::kJsonSchema, json::Serialize(schema), std::string(field)};
  if (const auto* text = schema.if_string())
    return OutputForm{GrammarKind::kJsonSchema, std::string(*text), std::string(field)};
  return Bad(
      field, where,
      fmt::format("is of type {}, expected a JSON schema (an object)", json::KindName(schema)));
}

MaybeForm ReadText(GrammarKind kind, std::string_view field, std::string_view where,
                   const json::Value& value) {
  const auto* text = value.if_string();
  if (text == nullptr)
    return Bad(field, where,
               fmt::format("is of type {}, expected a string", json::KindName(value)));
  return OutputForm{kind, std::string(*text), std::string(field)};
}

MaybeForm ReadChoices(std::string_view field, std::string_view where, const json::Value& value) {
  const json::Array* choices = value.if_array();
  if (choices == nullptr)
    return Bad(field, where,
               fmt::format("is of type {}, expected an array of strings", json::KindName(value)));
  for (const json::Value& choice : *choices)
    if (!choice.is_string())
      return Bad(field, where,
                 fmt::format("has an entry of type {}, expected strings", json::KindName(choice)));
  return OutputForm{GrammarKind::kChoices, json::Serialize(value), std::string(field)};
}

OutputForm AnyJsonObject(std::string_view field) {
  return {GrammarKind::kJsonSchema, R"({"type":"object"})", std::string(field)};
}

/// {"name", "description", "strict", "schema"} of response_format.
MaybeForm ReadJsonSchema(const json::Object& format, std::vector<Warning>* warnings) {
  constexpr std::string_view kWhere = "response_format.json_schema";
  static constexpr std::array<std::string_view, 4> kMembers = {"name", "description", "strict",
                                                               "schema"};
  const json::Value* value = json::Find(format, "json_schema");
  const json::Object* object = value == nullptr ? nullptr : value->if_object();
  if (object == nullptr)
    return Bad("response_format", kWhere, "is missing, expected an object with a schema");
  WarnUnknown(*object, kMembers, kWhere, warnings);
  const json::Value* strict = json::Find(*object, "strict");
  if (strict != nullptr && !strict->is_bool())
    return Bad("response_format", kWhere, "has a member strict that is not true or false");
  const json::Value* schema = json::Find(*object, "schema");
  // The hosted API lets the schema out where it is not strict; then any object will do.
  if (schema == nullptr) return AnyJsonObject("response_format");
  if (!schema->is_object())
    return Bad("response_format", "response_format.json_schema.schema",
               fmt::format("is of type {}, expected an object", json::KindName(*schema)));
  auto form = ReadSchema("response_format", "response_format.json_schema.schema", *schema);
  if (form.has_value() && strict != nullptr) (*form)->is_strict = strict->get_bool();
  return form;
}

/// {"structures": [{"begin", "schema", "end"}], "triggers": [...]}: free text with JSON between
/// marks, as vLLM and SGLang have it.
MaybeForm ReadStructuralTag(const json::Object& format) {
  constexpr std::string_view kField = "response_format";
  const json::Value* structures = json::Find(format, "structures");
  const json::Value* triggers = json::Find(format, "triggers");
  if (structures == nullptr || !structures->is_array() || triggers == nullptr ||
      !triggers->is_array())
    return Bad(kField, kField, "of type structural_tag needs two arrays: structures and triggers");
  text::TagGrammar grammar;
  grammar.free_text = true;
  for (const json::Value& trigger : triggers->get_array()) {
    if (!trigger.is_string())
      return Bad(kField, "response_format.triggers", "has an entry that is not a string");
    grammar.triggers.emplace_back(trigger.get_string());
  }
  for (const json::Value& entry : structures->get_array()) {
    const json::Object* tag = entry.if_object();
    const auto member = [tag](std::string_view name) {
      return tag == nullptr ? nullptr : json::Find(*tag, name);
    };
    const json::Value* begin = member("begin");
    const json::Value* end = member("end");
    const json::Value* schema = member("schema");
    if (begin == nullptr || !begin->is_string() || end == nullptr || !end->is_string() ||
        schema == nullptr || !schema->is_object())
      return Bad(kField, "response_format.structures",
                 "has an entry that is not {\"begin\": string, \"schema\": object, \"end\": "
                 "string}");
    grammar.tags.push_back({.begin = std::string(begin->get_string()),
                            .kind = GrammarKind::kJsonSchema,
                            .content = json::Serialize(*schema),
                            .end = std::string(end->get_string())});
  }
  return OutputForm{GrammarKind::kTags, ToSource(grammar), std::string(kField)};
}

MaybeForm ReadResponseFormat(const json::Object& body, std::vector<Warning>* warnings) {
  static constexpr std::array<std::string_view, 4> kMembers = {"type", "json_schema", "structures",
                                                               "triggers"};
  const json::Value* format = json::Find(body, "response_format");
  if (format == nullptr) return std::nullopt;
  const json::Object& object = format->get_object();
  const auto type = json::NeedString(object, "type");
  if (!type.has_value())
    return std::unexpected(
        BadField("response_format", "response_format: " + type.error().message()));
  WarnUnknown(object, kMembers, "response_format", warnings);
  if (*type == "text") return std::nullopt;
  if (*type == "json_object") return AnyJsonObject("response_format");
  if (*type == "json_schema") return ReadJsonSchema(object, warnings);
  if (*type == "structural_tag") return ReadStructuralTag(object);
  return Bad("response_format", "response_format",
             fmt::format("has the type \"{:.50}\", expected text, json_object, json_schema or "
                         "structural_tag",
                         *type));
}

/// One of the kinds that vLLM's two spellings share; `name` without "guided_".
MaybeForm ReadKind(std::string_view name, std::string_view field, std::string_view where,
                   const json::Value& value) {
  if (name == "json") return ReadSchema(field, where, value);
  if (name == "regex") return ReadText(GrammarKind::kRegex, field, where, value);
  if (name == "choice") return ReadChoices(field, where, value);
  if (name == "grammar") return ReadText(GrammarKind::kLark, field, where, value);
  if (!value.is_bool())
    return Bad(field, where,
               fmt::format("is of type {}, expected true or false", json::KindName(value)));
  if (!value.get_bool()) return std::nullopt;
  return AnyJsonObject(field);
}

constexpr std::array<std::string_view, 5> kKinds = {"json", "regex", "choice", "grammar",
                                                    "json_object"};

/// Finds all that ask for a form; more than one is an error that names two.
class FormReader {
 public:
  explicit FormReader(std::vector<Warning>* warnings) : warnings_(warnings) {}

  std::optional<ApiError> Add(MaybeForm form, std::string where) {
    if (!form.has_value()) return std::move(form).error();
    if (!form->has_value()) return std::nullopt;
    if (form_.has_value())
      return BadField((*form)->field, fmt::format("both {} and {} ask for a form of the output; "
                                                  "leave one of them out",
                                                  where_, where));
    form_ = **std::move(form);
    where_ = std::move(where);
    return std::nullopt;
  }

  std::optional<ApiError> AddKinds(const json::Object& object, std::string_view prefix,
                                   std::string_view parent) {
    for (const std::string_view kind : kKinds) {
      const std::string name = fmt::format("{}{}", prefix, kind);
      const json::Value* value = json::Find(object, name);
      if (value == nullptr) continue;
      const std::string field = parent.empty() ? name : std::string(parent);
      const std::string where = parent.empty() ? name : fmt::format("{}.{}", parent, name);
      if (auto error = Add(ReadKind(kind, field, where, *value), where)) return error;
    }
    return std::nullopt;
  }

  std::optional<ApiError> AddStructuredOutputs(const json::Object& body) {
    const json::Value* value = json::Find(body, "structured_outputs");
    if (value == nullptr) return std::nullopt;
    WarnUnknown(value->get_object(), kKinds, "structured_outputs", warnings_);
    return AddKinds(value->get_object(), "", "structured_outputs");
  }

  std::optional<OutputForm> Take() { return std::move(form_); }

 private:
  std::vector<Warning>* warnings_;
  std::optional<OutputForm> form_;
  std::string where_;
};

}  // namespace

ApiResult<std::optional<OutputForm>> ReadOutputForm(const json::Object& body,
                                                    std::vector<Warning>* warnings) {
  FormReader reader(warnings);
  if (auto error = reader.Add(ReadResponseFormat(body, warnings), "response_format"))
    return std::unexpected(*std::move(error));
  if (auto error = reader.AddKinds(body, "guided_", "")) return std::unexpected(*std::move(error));
  if (auto error = reader.AddStructuredOutputs(body)) return std::unexpected(*std::move(error));
  return reader.Take();
}

ApiResult<std::shared_ptr<const text::Grammar>> CompileOutputForm(const OutputForm& form,
                                                                  text::GrammarCache* grammars,
                                                                  std::vector<Warning>* warnings) {
  auto grammar = grammars->Get(form.kind, form.source);
  if (!grammar.has_value()) {
    const Status& status = grammar.error();
    if (status.code() == Code::kInternal) return std::unexpected(FromStatus(status));
    ApiError error = BadField(form.field, fmt::format("{}: {}", form.field, status.message()));
    if (status.code() == Code::kUnimplemented) error.code = "unsupported_schema";
    return std::unexpected(std::move(error));
  }
  for (const std::string& note : (*grammar)->notes()) {
    const std::string message = fmt::format("{}: {}", form.field, note);
    if (form.is_strict) return std::unexpected(BadField(form.field, message));
    warnings->push_back({"unknown_keyword", form.field, message});
  }
  return *std::move(grammar);
}

}  // namespace tessera::server::openai
