// SPDX-License-Identifier: Apache-2.0
//
// Tools: the functions that a request lets the model call, and the choice among them, as every
// dialect has them. A dialect says how it spells them (ToolWords) and reads its tool_choice.
// Pure functions of the body; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"
#include "text/call_reader.h"

namespace tessera::server::chat {

struct ToolFields {
  enum class Choice : uint8_t {
    kNone,      // No call: the model is not told of tools either.
    kAuto,      // Text, or calls, or both.
    kRequired,  // At least one call and nothing else.
  };
  struct Function {
    std::string name;
    json::Value parameters;       // A schema: an object, or null for none.
    std::string parameters_path;  // "tools[0].function.parameters": where it stands.
    bool is_strict = false;       // The client wants the schema enforced whatever tool_choice says.
    bool is_allowed = true;       // tool_choice lets it be called.
  };

  json::Array tools;  // As templates take them: [{"type": "function", "function": {...}}].
  std::vector<Function> functions;  // The same, in this order.
  Choice choice = Choice::kNone;
  bool several = true;    // An answer may hold more than one call.
  bool is_older = false;  // Asked for as `functions`: the answer is in the older form too.

  /// Of the functions that may be called.
  std::shared_ptr<const std::vector<text::ToolSpec>> Specs() const;
};

/// How a dialect spells tools.
struct ToolWords {
  std::string_view tools;       // The field that lists them.
  std::string_view choice;      // The field of the choice.
  std::string_view type;        // What each is, by its "type"; empty: it has none.
  bool needs_type = false;      // "type" must be there.
  std::string_view wrapper;     // The member that holds the function; empty: the entry does.
  std::string_view parameters;  // The function's member that is its schema.
  std::span<const std::string_view> ignored;  // Members known to have no effect here.
};

using Problem = std::optional<openai::ApiError>;

/// Reads the list, then the choice by `read_choice`, which is called with the value of its field
/// and sets choice, several and is_allowed. Without a choice it is kAuto; without functions kNone.
/// `body` has passed CheckFields. Appends warnings.
openai::ApiResult<ToolFields> ReadTools(const json::Object& body, const ToolWords& words,
                                        Problem (*read_choice)(const json::Value& choice,
                                                               ToolFields* fields),
                                        std::vector<openai::Warning>* warnings);

// For readers of a choice.

openai::ApiError BadChoice(const ToolWords& words, std::string_view what);
void ForbidAll(ToolFields* fields);
/// Lets the function be called whose name `name` is; null or no string: 400.
Problem Allow(const json::Value* name, const ToolWords& words, ToolFields* fields);
/// One function was asked for: it is called, once.
Problem RequireOnly(const json::Value* name, const ToolWords& words, ToolFields* fields);

}  // namespace tessera::server::chat
