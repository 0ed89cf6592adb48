// SPDX-License-Identifier: Apache-2.0
//
// A flag for every field of an endpoint, out of the table that the gateway validates with
// (gateway/spec/field_table.h): --min-workers for min_workers. What a flag says is checked as the
// gateway will.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// Flags for all fields but `name`, and --file. What they say ends in `body`, which must outlive
/// the parse. `is_update`: without those that an update may not name.
void AddFieldFlags(CLI::App* verb, json::Object* body, std::string* file, bool is_update);

/// "max_workers" -> "--max-workers".
std::string FlagOfField(std::string_view name);

/// The value of a flag as the field's JSON: numbers and booleans by their text, objects as JSON,
/// lists as JSON or separated by commas. Errors say what was expected. Pure.
Result<json::Value> ParseFieldText(std::string_view name, std::string_view text);

/// The object in a file ("-": stdin) of at most as many bytes as a gateway takes.
Result<json::Object> ReadFieldFile(const std::string& path);

}  // namespace tessera::cli
