// SPDX-License-Identifier: Apache-2.0
//
// The protocol of the `render` verb: one JSON object in, one JSON object out, in order.
//   in   {"messages": [...], "tools"?: [...], "documents"?: [...], "add_generation_prompt"?: bool,
//         "vars"?: {...}, "now"?: "2026-01-15T12:34:56"}
//   out  {"text": "..."} or {"error": "..."}
// add_generation_prompt is false when absent, as in transformers. `now` is what strftime_now shows:
// ISO 8601, date with or without time; without an offset it is UTC. Other members are an error.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/chat_template.h"

namespace tessera::text {

/// The answer line, without a line end. Failures are the answer, so this never fails.
/// `now_unix_seconds` counts where the request has no "now".
std::string RenderLine(const ChatTemplate& chat_template, std::string_view line,
                       int64_t now_unix_seconds);

/// "2026-01-15", "2026-01-15T12:34:56", "2026-01-15 12:34:56.25+02:00", "...Z" -> Unix seconds.
/// kInvalidArgument shows an example of what is expected.
Result<int64_t> ParseIsoTime(std::string_view text);

}  // namespace tessera::text
