// SPDX-License-Identifier: Apache-2.0
#include "server/openai/chat_request.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "server/openai/message_format.h"
#include "server/openai/messages.h"
#include "server/openai/thought_form.h"
#include "server/openai/tool_constraint.h"
#include "server/openai/tool_fields.h"
#include "server/request_templates.h"

namespace tessera::server::openai {
namespace {

/// What of the body the template sees beside messages and tools.
ApiResult<void> ReadTemplateFields(const json::Object& body, text::RenderInput* input,
                                   bool* continues) {
  if (const json::Value* documents = json::Find(body, "documents")) input->documents = *documents;
  *continues = BoolOr(body, "continue_final_message", false);
  input->add_generation_prompt = BoolOr(body, "add_generation_prompt", !*continues);
  if (*continues && input->add_generation_prompt)
    return std::unexpected(
        BadField("continue_final_message",
                 "continue_final_message and add_generation_prompt are both true; the answer goes "
                 "on within the last message or begins a new one"));
  if (const json::Value* effort = json::Find(body, "reasoning_effort"))
    input->vars.insert_or_assign("reasoning_effort", *effort);
  if (const json::Value* extra = json::Find(body, "chat_template_kwargs"))
    for (const auto& [key, value] : extra->get_object()) input->vars.insert_or_assign(key, value);
  return {};
}

void WarnOfText(const ServedModel& model, bool has_tools, std::vector<Warning>* warnings) {
  const std::string& name = model.chat_format.tool_syntax->name;
  const bool is_learnt = name == "learnt";
  warnings->push_back(
      {"normalized", has_tools ? "tools" : "messages",
       fmt::format("the model's chat template knows no functions: {} written as text, calls in the "
                   "form {}",
                   has_tools ? "they were" : "calls and results were",
                   is_learnt ? "of the template" : fmt::format("\"{}\"", name))});
}

/// The model with the template that the client brought; nothing when there is none.
ApiResult<std::optional<ServedModel>> WithOwnTemplate(const json::Object& body,
                                                      const ServedModel& model) {
  constexpr std::string_view kField = "chat_template";
  const json::Value* source = json::Find(body, kField);
  if (source == nullptr) return std::nullopt;
  if (model.request_templates == nullptr) {
    ApiError error = BadField(
        kField,
        "chat_template: this server renders no templates of clients, since they run on it; the "
        "operator can allow them (--trust-request-chat-template) or name one (--chat-template)");
    error.code = "unsupported_parameter";
    return std::unexpected(std::move(error));
  }
  auto learnt = model.request_templates->Get(source->get_string());
  if (!learnt.has_value())
    return std::unexpected(
        BadField(kField, fmt::format("chat_template: {}", learnt.error().ToString())));
  ServedModel changed = model;
  changed.chat_template = std::move(learnt->chat_template);
  changed.chat_format = std::move(learnt->format);
  return changed;
}

/// `messages` of a body, in their normal form, and its tools.
ApiResult<AskedChat> ReadAsked(json::Object body, std::vector<Warning> warnings) {
  AskedChat asked{.body = std::move(body), .messages = {}, .tools = {}, .warnings = {}};
  asked.warnings = std::move(warnings);
  auto tools = ReadToolFields(asked.body, &asked.warnings);
  if (!tools.has_value()) return std::unexpected(std::move(tools).error());
  asked.tools = *std::move(tools);
  json::Value* messages = asked.body.if_contains("messages");
  if (messages == nullptr || messages->is_null())
    return std::unexpected(BadField("messages", "the field messages is missing"));
  asked.messages = std::move(*messages);
  auto changes = NormalizeMessages(&asked.messages);
  if (!changes.has_value()) return std::unexpected(std::move(changes).error());
  asked.warnings.insert(asked.warnings.end(), changes->begin(), changes->end());
  return asked;
}

ApiResult<text::ChatPrompt> Render(AskedChat* asked, const ServedModel& model,
                                   const text::SpecialTokens& specials, int64_t now_unix_seconds) {
  if (model.chat_template == nullptr)
    return std::unexpected(BadField(
        "messages",
        "this model has no chat template; use /v1/completions, or start the server with one"));
  text::RenderInput input;
  input.messages = std::move(asked->messages);
  input.now_unix_seconds = now_unix_seconds;
  input.vars = model.template_vars;
  bool continues = false;
  if (auto read = ReadTemplateFields(asked->body, &input, &continues); !read.has_value())
    return std::unexpected(std::move(read).error());
  // Where no call may be made the model is not told of any; calls of the history are told of.
  const bool has_tools = asked->tools.choice != chat::ToolFields::Choice::kNone;
  if (text::WriteTools(model.chat_format, has_tools ? asked->tools.tools : json::Array(), &input))
    WarnOfText(model, has_tools, &asked->warnings);
  auto prompt = text::BuildChatPrompt(std::move(input), *model.chat_template, *model.tokenizer,
                                      specials, {.continues_last = continues});
  // What a template refuses (raise_exception, a limit) is about the messages, whatever its code.
  if (!prompt.has_value()) return std::unexpected(BadField("messages", prompt.error().ToString()));
  if (prompt->ids.empty())
    return std::unexpected(
        BadField("messages", "the chat template made an empty prompt of the messages"));
  return *std::move(prompt);
}

}  // namespace

ApiResult<text::ChatPrompt> MakeChatPrompt(AskedChat* asked, const ServedModel& model,
                                           const text::SpecialTokens& specials,
                                           int64_t now_unix_seconds) {
  const auto own = WithOwnTemplate(asked->body, model);
  if (!own.has_value()) return std::unexpected(own.error());
  return Render(asked, own->has_value() ? **own : model, specials, now_unix_seconds);
}

ApiResult<text::ChatPrompt> ReadChatPrompt(const json::Object& body, const ServedModel& model,
                                           const text::SpecialTokens& specials,
                                           int64_t now_unix_seconds,
                                           std::vector<Warning>* warnings) {
  auto asked = ReadAsked(body, std::move(*warnings));
  if (!asked.has_value()) return std::unexpected(std::move(asked).error());
  auto prompt = MakeChatPrompt(&*asked, model, specials, now_unix_seconds);
  *warnings = std::move(asked->warnings);
  return prompt;
}

ApiResult<ChatRequest> MakeChatRequest(AskedChat asked, const ServedModel& served,
                                       const text::SpecialTokens& specials,
                                       int64_t now_unix_seconds) {
  const auto own = WithOwnTemplate(asked.body, served);
  if (!own.has_value()) return std::unexpected(own.error());
  const ServedModel& model = own->has_value() ? **own : served;
  auto fields = ReadGenerationFields(asked.body, kChat, model);
  if (!fields.has_value()) return std::unexpected(std::move(fields).error());
  ChatRequest request{.fields = *std::move(fields), .prompt = {}};
  auto prompt = Render(&asked, model, specials, now_unix_seconds);
  if (!prompt.has_value()) return std::unexpected(std::move(prompt).error());
  request.prompt = *std::move(prompt);
  std::vector<Warning>& warnings = request.fields.warnings;
  warnings.insert(warnings.begin(), asked.warnings.begin(), asked.warnings.end());
  auto message =
      SetMessageFormat(asked.body, asked.tools, model, request.prompt.text, &request.fields);
  if (!message.has_value()) return std::unexpected(std::move(message).error());
  auto constrained = ConstrainTools(asked.body, asked.tools, model, &request.fields);
  if (!constrained.has_value()) return std::unexpected(std::move(constrained).error());
  auto formed = AllowThoughts(asked.body, asked.tools, model, &request.fields);
  if (!formed.has_value()) return std::unexpected(std::move(formed).error());
  if (auto error = RefuseIfStrict(asked.body, warnings)) return std::unexpected(*std::move(error));
  return request;
}

ApiResult<ChatRequest> ReadChatRequest(std::string_view body, const ServedModel& model,
                                       const text::SpecialTokens& specials,
                                       int64_t now_unix_seconds) {
  auto checked = ReadBody(body, kChat, model);
  if (!checked.has_value()) return std::unexpected(std::move(checked).error());
  auto asked = ReadAsked(std::move(checked->body), std::move(checked->warnings));
  if (!asked.has_value()) return std::unexpected(std::move(asked).error());
  return MakeChatRequest(*std::move(asked), model, specials, now_unix_seconds);
}

}  // namespace tessera::server::openai
