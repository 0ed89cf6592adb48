// SPDX-License-Identifier: Apache-2.0
//
// JSON from outside: Boost.JSON values behind one parse function with limits. Everything that reads
// JSON in this tree (headers, configs, request bodies) uses it, so that hostile input meets one
// set of rules: strict RFC 8259, valid UTF-8, bounded depth and size, no duplicate keys.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera::json {

using Array = boost::json::array;
using Object = boost::json::object;
using Value = boost::json::value;

struct Limits {
  uint64_t max_bytes = 64ull << 20;
  uint32_t max_depth = 64;       // Nesting of arrays and objects.
  uint64_t max_keys = 1u << 20;  // Members of one object.
  /// Refuse a key that occurs twice in one object; without, the last one wins as in most readers.
  bool unique_keys = true;
};

/// Parses exactly one value with nothing but white space around it.
/// kInvalidArgument "offset 17: ...: " with what was met and expected; kResourceExhausted past a
/// limit. `where` (a file name, "request body") becomes the error's context.
Result<Value> Parse(std::string_view text, const Limits& limits, std::string_view where);

/// Compact text; non-ASCII as UTF-8, doubles in the shortest form that reads back the same (1.0,
/// 0.25). Requires finite doubles, as Parse() gives them.
std::string Serialize(const Value& value);
/// Two-space indented text with a newline at the end; numbers as Serialize() writes them.
std::string SerializePretty(const Value& value);

// Total look-ups. A JSON null counts as absent, since writers of model configs use it so.
const Value* Find(const Object& object, std::string_view key);
/// The member, or `fallback` when absent. kInvalidArgument naming the key when the type is wrong.
Result<int64_t> GetInt(const Object& object, std::string_view key, int64_t fallback);
Result<double> GetDouble(const Object& object, std::string_view key, double fallback);
Result<bool> GetBool(const Object& object, std::string_view key, bool fallback);
Result<std::string> GetString(const Object& object, std::string_view key, std::string fallback);
/// The same for members that must be there.
Result<int64_t> NeedInt(const Object& object, std::string_view key);
Result<double> NeedDouble(const Object& object, std::string_view key);
Result<std::string> NeedString(const Object& object, std::string_view key);

/// "string", "integer", "number", "boolean", "array", "object" or "null": for messages.
std::string_view KindName(const Value& value);

}  // namespace tessera::json
