// SPDX-License-Identifier: Apache-2.0
//
// Logging: spdlog to stderr, one line an event. Answers go to stdout, so logs never do. Prompts,
// generated text and secrets are never logged. Call SetUp once in main; before that and in tests
// the default (warnings) holds. Thread-safe.
#pragma once

#include <spdlog/spdlog.h>

#include <string_view>

#include "base/status.h"

namespace tessera::log {

/// `level`: trace, debug, info, warn, error, off. kInvalidArgument names the accepted words.
Status SetUp(std::string_view level);

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace tessera::log
