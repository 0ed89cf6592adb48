// SPDX-License-Identifier: Apache-2.0
#include "server/openai/message_format.h"

#include <memory>

#include "text/kept_specials.h"

namespace tessera::server::openai {
namespace {

/// Whether thoughts are a part of their own: as the client asks, else as the server was told.
ApiResult<bool> SeparatesReasoning(const json::Object& body, const ServedModel& model) {
  const json::Value* asked = json::Find(body, "separate_reasoning");
  const bool drops = !BoolOr(body, "include_reasoning", true);
  const bool separates = BoolOr(body, "separate_reasoning", model.separates_reasoning) || drops;
  if (separates && !model.chat_format.reasoning.has_value()) {
    // The server's own setting is no fault of the client's.
    if (asked == nullptr && !drops) return false;
    return std::unexpected(BadField(
        asked != nullptr ? "separate_reasoning" : "include_reasoning",
        "nothing is known of how this model marks its thoughts; the operator can name it with "
        "--reasoning-parser"));
  }
  if (asked != nullptr && !asked->get_bool() && drops)
    return std::unexpected(BadField("include_reasoning",
                                    "include_reasoning is false, which needs separate_reasoning"));
  return separates;
}

ApiResult<void> ReadBudget(const json::Object& body, const ServedModel& model,
                           MessageFields* message) {
  constexpr std::string_view kField = "thinking_token_budget";
  const bool is_asked = json::Find(body, kField) != nullptr;
  const std::optional<text::ReasoningSyntax>& syntax = model.chat_format.reasoning;
  if (is_asked && !syntax.has_value())
    return std::unexpected(
        BadField(kField,
                 "nothing is known of how this model marks its thoughts; the operator can name it "
                 "with --reasoning-parser"));
  if (!syntax.has_value()) return {};
  auto end = model.tokenizer->Encode(syntax->end, {.add_special = false, .parse_special = true});
  if (!end.has_value()) return std::unexpected(FromStatus(end.error(), kField));
  message->reasoning_end = *std::move(end);
  if (is_asked) message->reasoning_budget = IntegerOr(body, kField, 0);
  return {};
}

}  // namespace

ApiResult<void> SetMessageFormat(const json::Object& body, const chat::ToolFields& tools,
                                 const ServedModel& model, std::string_view prompt,
                                 GenerationFields* fields) {
  const auto separates = SeparatesReasoning(body, model);
  if (!separates.has_value()) return std::unexpected(separates.error());
  const text::ChatFormat& format = model.chat_format;
  MessageFields& message = fields->message;
  message.format.separates_reasoning = *separates;
  message.drops_reasoning = !BoolOr(body, "include_reasoning", true);
  message.is_older = tools.is_older;
  message.needs_call = tools.choice == chat::ToolFields::Choice::kRequired;
  const bool has_tools = tools.choice != chat::ToolFields::Choice::kNone;
  const bool has_budget = json::Find(body, "thinking_token_budget") != nullptr;
  if (!has_tools && !*separates && !has_budget) return {};
  if (format.reasoning.has_value() && !text::StartsClosed(*format.reasoning, prompt)) {
    message.format.reasoning = format.reasoning;
    message.format.starts_reasoning = text::StartsOpen(*format.reasoning, prompt);
  } else if (format.reasoning.has_value() && has_budget) {
    fields->warnings.push_back(
        {"normalized", "thinking_token_budget",
         "thinking_token_budget has no effect: the prompt ends the thoughts before the answer "
         "begins"});
  }
  if (has_tools) {
    message.format.tool_syntax = format.tool_syntax;
    message.format.tools = tools.Specs();
    if (!tools.several || !format.tool_syntax->several) message.format.tool_options.calls_max = 1;
  }
  if (auto budget = ReadBudget(body, model, &message); !budget.has_value())
    return std::unexpected(std::move(budget).error());
  message.kept_specials =
      text::SpecialsIn(*model.tokenizer, message.format.tool_syntax.get(),
                       format.reasoning.has_value() ? &*format.reasoning : nullptr);
  return {};
}

}  // namespace tessera::server::openai
