// SPDX-License-Identifier: Apache-2.0
#include "server/anthropic/message_options.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "server/chat/content.h"

namespace tessera::server::anthropic {
namespace {

using chat::BadChoice;
using chat::Place;
using chat::Problem;
using chat::ToolFields;
using openai::BadField;

// A type, and hints that mean nothing here: prompts are cached without hints, inputs always
// streamed.
constexpr std::array<std::string_view, 3> kIgnored = {"type", "cache_control",
                                                      "eager_input_streaming"};
constexpr chat::ToolWords kWords{.tools = "tools",
                                 .choice = "tool_choice",
                                 .type = "custom",
                                 .needs_type = false,
                                 .wrapper = {},
                                 .parameters = "input_schema",
                                 .ignored = kIgnored};

Problem ReadChoice(const json::Value& choice, ToolFields* fields) {
  const json::Object& object = choice.get_object();
  const json::Value* type = json::Find(object, "type");
  if (type == nullptr || !type->is_string())
    return BadChoice(kWords, "has no type, expected auto, any, tool or none");
  const std::string_view word = type->get_string();
  if (word == "none") {
    fields->choice = ToolFields::Choice::kNone;
  } else if (word == "auto") {
    fields->choice = ToolFields::Choice::kAuto;
  } else if (word == "any") {
    fields->choice = ToolFields::Choice::kRequired;
  } else if (word == "tool") {
    if (Problem problem = RequireOnly(json::Find(object, "name"), kWords, fields)) return problem;
  } else {
    return BadChoice(
        kWords, fmt::format("has the type \"{:.50}\", expected auto, any, tool or none", word));
  }
  const json::Value* only_one = json::Find(object, "disable_parallel_tool_use");
  if (only_one == nullptr) return std::nullopt;
  if (!only_one->is_bool())
    return BadChoice(kWords, "has a disable_parallel_tool_use that is not true or false");
  if (only_one->get_bool()) fields->several = false;
  return std::nullopt;
}

/// Fewer than the hosted service asks for are fine here.
Problem ReadBudget(const json::Object& thinking, const json::Object& body, int64_t* budget) {
  const json::Value* value = json::Find(thinking, "budget_tokens");
  if (value == nullptr || !openai::AsInteger(*value, budget) || *budget < 1)
    return BadField("thinking", "thinking.budget_tokens is missing or no whole number above 0");
  const json::Value* max_tokens = json::Find(body, "max_tokens");
  if (max_tokens == nullptr || *budget < openai::IntegerOr(body, "max_tokens", 0))
    return std::nullopt;
  return BadField("thinking",
                  fmt::format("thinking.budget_tokens is {}, expected less than max_tokens ({})",
                              *budget, openai::IntegerOr(body, "max_tokens", 0)));
}

Problem CheckDisplay(const json::Object& thinking) {
  const json::Value* display = json::Find(thinking, "display");
  if (display == nullptr || *display == "summarized" || *display == "omitted") return std::nullopt;
  return BadField("thinking", "thinking.display is not \"summarized\" or \"omitted\"");
}

}  // namespace

openai::ApiResult<ToolFields> ReadMessageTools(const json::Object& body,
                                               std::vector<openai::Warning>* warnings) {
  return ReadTools(body, kWords, ReadChoice, warnings);
}

Problem ReadThinking(const json::Object& body, const ServedModel& model, json::Object* chat) {
  const json::Value* value = json::Find(body, "thinking");
  if (value == nullptr) return std::nullopt;
  const json::Object& thinking = value->get_object();
  const json::Value* type = json::Find(thinking, "type");
  const bool has_marks = model.chat_format.reasoning.has_value();
  const bool is_disabled = type != nullptr && *type == "disabled";
  // The variable by which templates of several families turn thoughts on and off.
  (*chat)["chat_template_kwargs"] = {{"enable_thinking", !is_disabled}};
  if (is_disabled) {
    if (has_marks) (*chat)["include_reasoning"] = false;
    return std::nullopt;
  }
  if (Problem problem = CheckDisplay(thinking)) return problem;
  if (type != nullptr && *type == "adaptive") {
    if (has_marks) (*chat)["separate_reasoning"] = true;
    return std::nullopt;
  }
  if (type == nullptr || *type != "enabled")
    return BadField("thinking", "thinking.type is not \"enabled\", \"adaptive\" or \"disabled\"");
  int64_t budget = 0;
  if (Problem problem = ReadBudget(thinking, body, &budget)) return problem;
  (*chat)["separate_reasoning"] = true;
  (*chat)["thinking_token_budget"] = budget;
  return std::nullopt;
}

bool OmitsThinking(const json::Object& body) {
  const json::Value* thinking = json::Find(body, "thinking");
  const json::Value* display =
      thinking == nullptr ? nullptr : json::Find(thinking->get_object(), "display");
  return display != nullptr && *display == "omitted";
}

Problem ReadOutputConfig(const json::Object& body, json::Object* chat,
                         std::vector<openai::Warning>* warnings) {
  Place place{"output_format", "output_format"};
  const json::Value* format = json::Find(body, "output_format");
  if (const json::Value* config = json::Find(body, "output_config")) {
    constexpr std::array<std::string_view, 2> kMembers = {"format", "effort"};
    const Place of_config{"output_config", "output_config"};
    WarnOfUnknown(config->get_object(), kMembers, of_config, "was ignored", warnings);
    if (const json::Value* effort = json::Find(config->get_object(), "effort")) {
      if (!effort->is_string()) return BadPlace(of_config.Member("effort"), "is no string");
      (*chat)["reasoning_effort"] = *effort;
    }
    const json::Value* newer = json::Find(config->get_object(), "format");
    if (newer != nullptr && format != nullptr)
      return BadField("output_format",
                      "output_format is the older name of output_config.format; give one of them");
    if (newer != nullptr) {
      format = newer;
      place = of_config.Member("format");
    }
  }
  if (format == nullptr) return std::nullopt;
  const json::Object* object = format->if_object();
  const json::Value* type = object == nullptr ? nullptr : json::Find(*object, "type");
  const json::Value* schema = object == nullptr ? nullptr : json::Find(*object, "schema");
  if (type == nullptr || *type != "json_schema" || schema == nullptr || !schema->is_object())
    return BadPlace(place, "is not of the type json_schema with a schema");
  (*chat)["response_format"] = {{"type", "json_schema"},
                                {"json_schema", {{"name", "output"}, {"schema", *schema}}}};
  return std::nullopt;
}

}  // namespace tessera::server::anthropic
