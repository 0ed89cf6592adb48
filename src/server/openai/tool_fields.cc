// SPDX-License-Identifier: Apache-2.0
#include "server/openai/tool_fields.h"

#include <fmt/format.h>

#include <string_view>

namespace tessera::server::openai {
namespace {

using chat::BadChoice;
using chat::Problem;
using chat::ToolFields;

constexpr chat::ToolWords kNewer{.tools = "tools",
                                 .choice = "tool_choice",
                                 .type = "function",
                                 .needs_type = true,
                                 .wrapper = "function",
                                 .parameters = "parameters",
                                 .ignored = {}};
constexpr chat::ToolWords kOlder{.tools = "functions",
                                 .choice = "function_call",
                                 .type = {},
                                 .needs_type = false,
                                 .wrapper = {},
                                 .parameters = "parameters",
                                 .ignored = {}};

/// The member of `value` of that name; null where there is none.
const json::Value* Member(const json::Value* value, std::string_view name) {
  const json::Object* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : json::Find(*object, name);
}

/// {"type": "function", "function": {"name": ...}}, or the name beside the type.
const json::Value* NameOf(const json::Value& function, const chat::ToolWords& words) {
  return Member(words.wrapper.empty() ? &function : Member(&function, words.wrapper), "name");
}

Problem ReadAllowed(const json::Value* allowed, const chat::ToolWords& words, ToolFields* fields) {
  const json::Value* mode = Member(allowed, "mode");
  const json::Value* list = Member(allowed, "tools");
  if (mode == nullptr || (*mode != "auto" && *mode != "required") || list == nullptr ||
      !list->is_array() || list->get_array().empty())
    return BadChoice(words,
                     "of type allowed_tools needs a mode, auto or required, and a list of "
                     "tools");
  fields->choice = *mode == "auto" ? ToolFields::Choice::kAuto : ToolFields::Choice::kRequired;
  ForbidAll(fields);
  for (const json::Value& entry : list->get_array())
    if (Problem problem = Allow(NameOf(entry, words), words, fields)) return problem;
  return std::nullopt;
}

Problem ReadChoiceWord(std::string_view word, const chat::ToolWords& words, ToolFields* fields) {
  const bool is_older = words.choice == kOlder.choice;
  if (word == "none") {
    fields->choice = ToolFields::Choice::kNone;
  } else if (word == "auto") {
    fields->choice = ToolFields::Choice::kAuto;
  } else if (word == "required" && !is_older) {
    fields->choice = ToolFields::Choice::kRequired;
  } else {
    return BadChoice(words, fmt::format("is \"{:.50}\", expected none, auto{} or a function", word,
                                        is_older ? "" : ", required"));
  }
  return std::nullopt;
}

ApiError BadChoiceType(const json::Value& choice, const chat::ToolWords& words) {
  return BadChoice(
      words, fmt::format("is of type {}, expected a string or an object", json::KindName(choice)));
}

Problem ReadNewerChoice(const json::Value& choice, ToolFields* fields) {
  return ReadToolChoice(choice, kNewer, fields);
}

Problem ReadOlderChoice(const json::Value& choice, ToolFields* fields) {
  if (const auto* word = choice.if_string()) return ReadChoiceWord(*word, kOlder, fields);
  if (!choice.is_object()) return BadChoiceType(choice, kOlder);
  return RequireOnly(NameOf(choice, kOlder), kOlder, fields);
}

bool Has(const json::Object& body, const chat::ToolWords& words) {
  return json::Find(body, words.tools) != nullptr || json::Find(body, words.choice) != nullptr;
}

}  // namespace

Problem ReadToolChoice(const json::Value& choice, const chat::ToolWords& words,
                       ToolFields* fields) {
  if (const auto* word = choice.if_string()) return ReadChoiceWord(*word, words, fields);
  if (!choice.is_object()) return BadChoiceType(choice, words);
  const json::Value* type = Member(&choice, "type");
  if (type != nullptr && *type == "allowed_tools")
    return ReadAllowed(words.wrapper.empty() ? &choice : Member(&choice, "allowed_tools"), words,
                       fields);
  if (type == nullptr || *type != "function")
    return BadChoice(words, "has another type than function or allowed_tools");
  return RequireOnly(NameOf(choice, words), words, fields);
}

ApiResult<ToolFields> ReadToolFields(const json::Object& body, std::vector<Warning>* warnings) {
  const bool is_older = Has(body, kOlder);
  if (is_older && Has(body, kNewer))
    return std::unexpected(
        BadField(kOlder.tools,
                 "functions and function_call are older names of tools and tool_choice; give "
                 "one or the other"));
  auto fields = is_older ? ReadTools(body, kOlder, ReadOlderChoice, warnings)
                         : ReadTools(body, kNewer, ReadNewerChoice, warnings);
  if (!fields.has_value()) return fields;
  fields->is_older = is_older;
  // The older form has room for one.
  if (is_older || !BoolOr(body, "parallel_tool_calls", true)) fields->several = false;
  return fields;
}

}  // namespace tessera::server::openai
