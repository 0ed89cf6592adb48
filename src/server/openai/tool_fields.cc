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

const json::Value* NameOf(const json::Value* function) {
  const json::Object* object = function == nullptr ? nullptr : function->if_object();
  return object == nullptr ? nullptr : json::Find(*object, "name");
}

/// {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [...]}}
Problem ReadAllowed(const json::Value* value, ToolFields* fields) {
  const json::Object* allowed = value == nullptr ? nullptr : value->if_object();
  const json::Value* mode = allowed == nullptr ? nullptr : json::Find(*allowed, "mode");
  const json::Value* list = allowed == nullptr ? nullptr : json::Find(*allowed, "tools");
  if (mode == nullptr || (*mode != "auto" && *mode != "required") || list == nullptr ||
      !list->is_array() || list->get_array().empty())
    return BadChoice(kNewer,
                     "of type allowed_tools needs allowed_tools with a mode, auto or required, and "
                     "a list of tools");
  fields->choice = *mode == "auto" ? ToolFields::Choice::kAuto : ToolFields::Choice::kRequired;
  ForbidAll(fields);
  for (const json::Value& entry : list->get_array()) {
    const json::Value* function =
        entry.is_object() ? json::Find(entry.get_object(), "function") : nullptr;
    if (Problem problem = Allow(NameOf(function), kNewer, fields)) return problem;
  }
  return std::nullopt;
}

Problem ReadChoiceWord(std::string_view word, const chat::ToolWords& words, ToolFields* fields) {
  const bool is_newer = words.choice == kNewer.choice;
  if (word == "none") {
    fields->choice = ToolFields::Choice::kNone;
  } else if (word == "auto") {
    fields->choice = ToolFields::Choice::kAuto;
  } else if (word == "required" && is_newer) {
    fields->choice = ToolFields::Choice::kRequired;
  } else {
    return BadChoice(words, fmt::format("is \"{:.50}\", expected none, auto{} or a function", word,
                                        is_newer ? ", required" : ""));
  }
  return std::nullopt;
}

ApiError BadChoiceType(const json::Value& choice, const chat::ToolWords& words) {
  return BadChoice(
      words, fmt::format("is of type {}, expected a string or an object", json::KindName(choice)));
}

Problem ReadChoice(const json::Value& choice, ToolFields* fields) {
  if (const auto* word = choice.if_string()) return ReadChoiceWord(*word, kNewer, fields);
  const json::Object* object = choice.if_object();
  if (object == nullptr) return BadChoiceType(choice, kNewer);
  const json::Value* type = json::Find(*object, "type");
  if (type != nullptr && *type == "allowed_tools")
    return ReadAllowed(json::Find(*object, "allowed_tools"), fields);
  if (type == nullptr || *type != "function")
    return BadChoice(kNewer, "has another type than function or allowed_tools");
  return RequireOnly(NameOf(json::Find(*object, "function")), kNewer, fields);
}

Problem ReadOlderChoice(const json::Value& choice, ToolFields* fields) {
  if (const auto* word = choice.if_string()) return ReadChoiceWord(*word, kOlder, fields);
  if (!choice.is_object()) return BadChoiceType(choice, kOlder);
  return RequireOnly(NameOf(&choice), kOlder, fields);
}

bool Has(const json::Object& body, const chat::ToolWords& words) {
  return json::Find(body, words.tools) != nullptr || json::Find(body, words.choice) != nullptr;
}

}  // namespace

ApiResult<ToolFields> ReadToolFields(const json::Object& body, std::vector<Warning>* warnings) {
  const bool is_older = Has(body, kOlder);
  if (is_older && Has(body, kNewer))
    return std::unexpected(
        BadField(kOlder.tools,
                 "functions and function_call are older names of tools and tool_choice; give "
                 "one or the other"));
  auto fields = is_older ? ReadTools(body, kOlder, ReadOlderChoice, warnings)
                         : ReadTools(body, kNewer, ReadChoice, warnings);
  if (!fields.has_value()) return fields;
  fields->is_older = is_older;
  // The older form has room for one.
  if (is_older || !BoolOr(body, "parallel_tool_calls", true)) fields->several = false;
  return fields;
}

}  // namespace tessera::server::openai
