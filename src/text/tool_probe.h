// SPDX-License-Identifier: Apache-2.0
//
// What a chat template teaches of tools: it is rendered with calls of functions whose names,
// arguments and ids occur nowhere else, and the text around these words is the syntax. A syntax is
// only learnt if the parser made of it reads back every call that the template wrote.
//
// Method: three renders of one conversation, the assistant's turn being text, one call, two calls.
// What text and call have in common before and behind is the turn; the rest around one call splits
// into section, call and separator by comparing it with what stands between two.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/json.h"
#include "text/chat_template.h"
#include "text/tool_syntax.h"

namespace tessera::text {

struct ToolProbe {
  /// The syntax of calls in the assistant's turns; nothing when the template writes none that we
  /// understand.
  std::optional<ToolSyntax> syntax;
  /// The template writes the list of tools into the prompt.
  bool shows_tools = false;
  /// It fails without a list of tools, be it empty.
  bool needs_list = false;
  /// It writes calls of the history, in whatever form.
  bool writes_calls = false;
  /// It takes a message of the role "system".
  bool takes_system = false;
  /// Why there is no syntax.
  std::string reason;
};

/// `vars` are the template's variables, `end_texts` the texts of tokens that end an answer: they
/// belong to no syntax. A template that fails on everything gives a probe that found nothing.
ToolProbe ProbeTools(const ChatTemplate& chat_template, const json::Object& vars,
                     std::span<const std::string> end_texts);

}  // namespace tessera::text
