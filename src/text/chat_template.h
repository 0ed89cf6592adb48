// SPDX-License-Identifier: Apache-2.0
//
// ChatTemplate: messages -> prompt text, by the model's own Jinja template (minijinja in textkit/)
// in the environment that transformers gives it: trim_blocks, lstrip_blocks, loop controls,
// raise_exception, strftime_now, tojson without HTML escaping, the generation tag, Python's
// printing of values. Fuel, recursion and output limits bound hostile templates
// (template_limits.h). Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tessera::text {

struct RenderInput {
  json::Value messages;   // Array of objects, as the client sent them.
  json::Value tools;      // Array, or null when the client sent none.
  json::Value documents;  // Array, or null.
  bool add_generation_prompt = true;
  json::Object vars;  // Extra variables: bos_token, eos_token, chat_template_kwargs.
  /// Unix seconds that strftime_now shows (UTC); tests fix it.
  int64_t now_unix_seconds = 0;
};

class ChatTemplate {
 public:
  /// kInvalidArgument with Jinja's message and line when the source does not parse.
  static Result<std::shared_ptr<const ChatTemplate>> Parse(std::string_view source);
  virtual ~ChatTemplate() = default;
  /// kInvalidArgument with the template's own words when it calls raise_exception or fails,
  /// kResourceExhausted past a limit.
  virtual Result<std::string> Render(const RenderInput& input) const = 0;
  /// The same for a request that still is JSON text ("messages", "tools", "documents",
  /// "add_generation_prompt", "vars": textkit_template.h), so that integers of any width survive.
  virtual Result<std::string> RenderRequest(std::string_view request_json,
                                            int64_t now_unix_seconds) const = 0;
  virtual const std::string& source() const = 0;
};

}  // namespace tessera::text
