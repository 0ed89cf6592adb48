// SPDX-License-Identifier: Apache-2.0
//
// ToolGrammar: the form of an answer that may, or must, call functions, as a grammar (llguidance's
// Lark) for constrained output: from the mark of a call on everything is as the syntax says, the
// name is one of the functions, and the arguments obey its schema. A call ends the text: only
// further calls may follow. Pure functions.
//
// Thoughts before the answer are free text up to their end mark.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/reasoning_parser.h"
#include "text/tokenizer.h"
#include "text/tool_syntax.h"

namespace tessera::text {

struct ToolSchema {
  std::string name;
  json::Value parameters;  // A JSON schema of an object; null: any object.
};

struct ToolGrammarOptions {
  bool needs_call = false;  // At least one call and no text; else text, or calls, or both.
  bool several = false;     // More than one call.
  /// What text is, where there is any: JSON that obeys this schema.
  std::optional<json::Value> text_schema = std::nullopt;
  std::optional<ReasoningSyntax> reasoning = std::nullopt;  // The answer may begin with thoughts.
  bool starts_reasoning = false;                            // It begins within them.
};

/// Text for Grammar::Compile, kind kLarkParts. Requires at least one tool. kUnimplemented names
/// what of a schema a syntax of single parameters cannot enforce. Nothing, without an error, when
/// the syntax has no mark and no call is needed: then text cannot be told from the beginning of a
/// call.
Result<std::optional<std::string>> ToolGrammar(const ToolSyntax& syntax,
                                               std::span<const ToolSchema> tools,
                                               const ToolGrammarOptions& options,
                                               const Tokenizer& tokenizer);

}  // namespace tessera::text
