// SPDX-License-Identifier: Apache-2.0
//
// Logging to stderr, one line an event, as text or JSON (log_line.h). Answers go to stdout, so logs
// never do. Prompts, generated text and secrets are never logged. Call SetUp once in main; before
// that and in tests the default (warnings, text) holds. Thread-safe.
//
// Two ways in: a sentence, "component: what happened" (log::warn("net: ..."), spdlog's), and an
// Event with fields. Lines below a warning never wait for whoever reads stderr: when its pipe is
// full they are lost, and the next line that gets through says how many.
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/log_line.h"
#include "base/status.h"

namespace tessera::log {

using Level = spdlog::level::level_enum;

/// `level`: trace, debug, info, warn, error, off. kInvalidArgument names the accepted words.
Status SetUp(std::string_view level, Format format = Format::kText);
/// As SetUp was told.
Format CurrentFormat();

/// A line with fields, where that level is logged at all.
void Event(Level level, std::string_view component, std::string_view message,
           std::span<const Field> fields);
inline void Event(Level level, std::string_view component, std::string_view message,
                  std::initializer_list<Field> fields = {}) {
  Event(level, component, message, std::span(fields.begin(), fields.size()));
}
/// The same whatever the level: what people are told in any case.
void Say(std::string_view component, std::string_view message);

/// Lines lost because nobody took them, since the start.
uint64_t LostLines();

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace tessera::log
