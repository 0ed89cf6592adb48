// SPDX-License-Identifier: Apache-2.0
//
// What a chat request says of functions: tools, tool_choice, parallel_tool_calls, and the older
// names functions and function_call. Pure functions of the body; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/openai/error.h"
#include "server/openai/schema.h"
#include "text/call_reader.h"

namespace tessera::server::openai {

struct ToolFields {
  enum class Choice : uint8_t {
    kNone,      // No call: the model is not told of tools either.
    kAuto,      // Text, or calls, or both.
    kRequired,  // At least one call and nothing else.
  };
  struct Function {
    std::string name;
    json::Value parameters;  // A schema: an object, or null for none.
    bool is_strict = false;  // The client wants the schema enforced whatever tool_choice says.
    bool is_allowed = true;  // tool_choice lets it be called.
  };

  json::Array tools;  // As templates take them: [{"type": "function", "function": {...}}].
  std::vector<Function> functions;  // The same, in this order.
  Choice choice = Choice::kNone;
  bool several = true;    // An answer may hold more than one call.
  bool is_older = false;  // Asked for as `functions`: the answer is in the older form too.

  /// Of the functions that may be called.
  std::shared_ptr<const std::vector<text::ToolSpec>> Specs() const;
};

/// `body` has passed CheckFields. Appends warnings.
ApiResult<ToolFields> ReadToolFields(const json::Object& body, std::vector<Warning>* warnings);

}  // namespace tessera::server::openai
