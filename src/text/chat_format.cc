// SPDX-License-Identifier: Apache-2.0
#include "text/chat_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "text/tool_probe.h"

namespace tessera::text {
namespace {

Result<ReasoningSyntax> NamedReasoning(std::string_view name) {
  const ReasoningSyntax* syntax = FindReasoningSyntax(name);
  if (syntax == nullptr)
    return Fail(InvalidArgument(fmt::format("there is no reasoning parser \"{:.50}\"; known are {}",
                                            name, fmt::join(ReasoningSyntaxNames(), ", "))));
  return *syntax;
}

std::string Instructions(const json::Array& tools, const ToolSyntax& syntax) {
  std::string list;
  for (const json::Value& tool : tools) list += json::Serialize(tool) + "\n";
  const std::vector<ToolCall> example = {{"NAME", {{"ARGUMENT", "VALUE"}}}};
  return fmt::format(
      "These functions can be called:\n<tools>\n{}</tools>\n"
      "To call one, write its name and its arguments in this form and nothing behind it:\n{}\n"
      "The result comes in the next message. When no function helps, answer as usual.",
      list, WriteToolCalls(syntax, example));
}

std::string ContentOf(const json::Object& message) {
  const json::Value* content = json::Find(message, "content");
  return content != nullptr && content->is_string() ? std::string(content->get_string()) : "";
}

std::string_view RoleOf(const json::Object& message) {
  const json::Value* role = json::Find(message, "role");
  return role != nullptr && role->is_string() ? std::string_view(role->get_string()) : "";
}

/// Into the system message, one that is there or a new one, or before the first turn's text.
void PutFirst(std::string text, bool takes_system, json::Array* messages) {
  const bool has_system = !messages->empty() && RoleOf(messages->front().as_object()) == "system";
  if (!has_system && takes_system) {
    json::Object system{{"role", "system"}, {"content", std::move(text)}};
    messages->insert(messages->begin(), std::move(system));
    return;
  }
  if (messages->empty()) return;
  json::Object& first = messages->front().as_object();
  const std::string content = ContentOf(first);
  first["content"] =
      has_system ? content + (content.empty() ? "" : "\n\n") + text : text + "\n\n" + content;
}

std::vector<ToolCall> CallsOf(const json::Object& message) {
  std::vector<ToolCall> calls;
  const json::Value* list = json::Find(message, "tool_calls");
  if (list == nullptr || !list->is_array()) return calls;
  for (const json::Value& entry : list->get_array()) {
    const json::Value* function =
        entry.is_object() ? json::Find(entry.get_object(), "function") : nullptr;
    if (function == nullptr || !function->is_object()) continue;
    const json::Value* name = json::Find(function->get_object(), "name");
    const json::Value* arguments = json::Find(function->get_object(), "arguments");
    if (name == nullptr || !name->is_string()) continue;
    ToolCall call{.name = std::string(name->get_string()), .arguments = {}};
    if (arguments != nullptr && arguments->is_object()) call.arguments = arguments->get_object();
    calls.push_back(std::move(call));
  }
  return calls;
}

/// Calls become text of their turn; results, one or more in a row, a turn of the user, which every
/// template takes.
bool WriteHistory(const ToolSyntax& syntax, json::Array* messages) {
  json::Array written;
  bool after_result = false;
  bool any = false;
  for (json::Value& value : *messages) {
    json::Object& message = value.as_object();
    const bool is_result = RoleOf(message) == "tool";
    if (is_result) {
      const std::string text =
          fmt::format("<tool_response>\n{}\n</tool_response>", ContentOf(message));
      if (after_result) {
        json::Object& last = written.back().as_object();
        last["content"] = ContentOf(last) + "\n" + text;
      } else {
        written.push_back({{"role", "user"}, {"content", text}});
      }
    } else if (const std::vector<ToolCall> calls = CallsOf(message); !calls.empty()) {
      const std::string content = ContentOf(message);
      message["content"] = content + (content.empty() ? "" : "\n") + WriteToolCalls(syntax, calls);
      message.erase("tool_calls");
      written.push_back(std::move(value));
      any = true;
    } else {
      message.erase("tool_calls");
      written.push_back(std::move(value));
    }
    any |= is_result;
    after_result = is_result;
  }
  *messages = std::move(written);
  return any;
}

/// Nine letters or digits from any id, the same for the same one: what Mistral's templates ask for.
class ShortIds {
 public:
  void Replace(json::Value* id) {
    if (id == nullptr || !id->is_string()) return;
    const std::string text(id->get_string());
    const bool is_short =
        text.size() == 9 && std::ranges::all_of(text, [](char c) {
          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        });
    if (is_short) return;
    const auto found = ids_.try_emplace(text, ids_.size()).first;
    *id = fmt::format("call{:05}", found->second);
  }

 private:
  std::map<std::string, size_t> ids_;
};

/// The history in the form that the template takes.
void AdaptHistory(const ToolSyntax& syntax, json::Array* messages) {
  const bool needs_ids =
      std::ranges::find(syntax.parts, CallPart::Kind::kId, &CallPart::kind) != syntax.parts.end();
  ShortIds ids;
  for (json::Value& value : *messages) {
    json::Object& message = value.as_object();
    if (needs_ids) ids.Replace(message.if_contains("tool_call_id"));
    json::Value* list = message.if_contains("tool_calls");
    if (list == nullptr || !list->is_array() || list->get_array().empty()) continue;
    if (syntax.history_content_as_null && ContentOf(message).empty()) {
      message["content"] = nullptr;  // May move the members.
      list = message.if_contains("tool_calls");
    }
    for (json::Value& entry : list->get_array()) {
      json::Object& call = entry.as_object();
      if (needs_ids) ids.Replace(call.if_contains("id"));
      json::Value* function = call.if_contains("function");
      if (function == nullptr || !function->is_object()) continue;
      json::Value* arguments = function->get_object().if_contains("arguments");
      if (syntax.history_arguments_as_text && arguments != nullptr && !arguments->is_string())
        *arguments = json::Serialize(*arguments);
    }
  }
}

}  // namespace

ChatFormat DefaultChatFormat() {
  ChatFormat format;
  format.tool_syntax = std::make_shared<const ToolSyntax>(DefaultToolSyntax());
  return format;
}

Result<ChatFormat> LearnChatFormat(const ChatTemplate& chat_template, const json::Object& vars,
                                   std::span<const std::string> end_texts,
                                   const ChatFormatOptions& options) {
  ChatFormat format = DefaultChatFormat();
  const ToolProbe probe = ProbeTools(chat_template, vars, end_texts);
  format.takes_system = probe.takes_system;
  format.needs_list = probe.needs_list;
  format.writes_calls = probe.writes_calls;
  const bool is_auto = options.tool_call_parser == "auto";
  const ToolSyntax* named =
      is_auto ? ToolSyntaxIn(chat_template.source()) : FindToolSyntax(options.tool_call_parser);
  if (!is_auto && named == nullptr)
    return Fail(
        InvalidArgument(fmt::format("there is no tool call parser \"{:.50}\"; known are {}",
                                    options.tool_call_parser, fmt::join(ToolSyntaxNames(), ", "))));
  if (is_auto && probe.syntax.has_value()) {
    format.tool_syntax = std::make_shared<const ToolSyntax>(*probe.syntax);
  } else if (named != nullptr) {
    format.tool_syntax = std::make_shared<const ToolSyntax>(*named);
  } else {
    // A form that we cannot read: the template must not teach it to the model either.
    format.writes_calls = false;
  }
  format.shows_tools =
      probe.shows_tools && (named != nullptr || (is_auto && probe.syntax.has_value()));
  if (options.reasoning_parser == "auto") {
    format.reasoning = ReasoningSyntaxOf(chat_template.source());
  } else {
    TESSERA_ASSIGN_OR_RETURN(format.reasoning, NamedReasoning(options.reasoning_parser));
  }
  return format;
}

bool WriteTools(const ChatFormat& format, const json::Array& tools, RenderInput* input) {
  json::Array& messages = input->messages.as_array();
  bool as_text = false;
  if (format.writes_calls) {
    AdaptHistory(*format.tool_syntax, &messages);
  } else {
    as_text = WriteHistory(*format.tool_syntax, &messages);
  }
  if (format.needs_list) input->tools = json::Array();
  if (tools.empty()) return as_text;
  if (format.shows_tools) {
    input->tools = tools;
    return as_text;
  }
  PutFirst(Instructions(tools, *format.tool_syntax), format.takes_system, &messages);
  return true;
}

}  // namespace tessera::text
