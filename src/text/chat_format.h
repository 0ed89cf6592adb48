// SPDX-License-Identifier: Apache-2.0
//
// ChatFormat: how a model's chat is written and read beyond its template: the syntax of tool calls,
// which parts of them the template writes by itself, the marks of thoughts. Made once when a model
// is opened; immutable from then on.
//
// Where a template does not take tools, they are written as text: the list and the syntax into the
// system message (or the first turn), calls and results of the history into the turns (WriteTools).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "text/chat_template.h"
#include "text/reasoning_parser.h"
#include "text/tool_syntax.h"

namespace tessera::text {

struct ChatFormat {
  std::shared_ptr<const ToolSyntax> tool_syntax;  // Never null.
  bool shows_tools = false;                       // The template writes the list of tools.
  bool writes_calls = false;  // The template writes calls and results of the history.
  bool takes_system = true;   // The template takes a system message.
  bool needs_list = false;    // The template fails without a list of tools, be it empty.
  std::optional<ReasoningSyntax> reasoning;
};

struct ChatFormatOptions {
  /// A name of ToolSyntaxNames(), or "auto": what the template teaches, else the default.
  std::string tool_call_parser = "auto";
  /// A name of ReasoningSyntaxNames(), or "auto": the marks that the template mentions.
  std::string reasoning_parser = "auto";
};

/// The format of a model without a template: the default syntax, everything as text.
ChatFormat DefaultChatFormat();

/// `vars` and `end_texts` as ProbeTools. kInvalidArgument lists the names when an option names none
/// of them.
Result<ChatFormat> LearnChatFormat(const ChatTemplate& chat_template, const json::Object& vars,
                                   std::span<const std::string> end_texts,
                                   const ChatFormatOptions& options);

/// Puts `tools` (OpenAI's list; empty: none) and the calls of the history into `input` as `format`
/// says. `input->messages` are OpenAI's, arguments of calls being objects. Returns whether anything
/// was written as text.
bool WriteTools(const ChatFormat& format, const json::Array& tools, RenderInput* input);

}  // namespace tessera::text
