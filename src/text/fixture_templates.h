// SPDX-License-Identifier: Apache-2.0
//
// The chat templates of real models that tests use: fixtures/chat_templates/templates.json says
// where each comes from.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/json.h"

namespace tessera::text {

/// Unix seconds at which the fixtures were rendered: 2026-01-15T12:34:56.
inline constexpr int64_t kFixtureClock = 1'768'480'496;

struct FixtureTemplate {
  std::string source;
  json::Object vars;
};
/// By name; read once.
const std::map<std::string, FixtureTemplate>& FixtureTemplates();

}  // namespace tessera::text
