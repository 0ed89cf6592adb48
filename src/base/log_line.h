// SPDX-License-Identifier: Apache-2.0
//
// One line of the log as text or as JSON. What comes from outside (paths, names, messages of
// errors) can neither end a line nor begin one, nor steer a terminal: control characters are
// escaped, bytes that are no UTF-8 replaced, long values cut. Pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace tessera::log {

enum class Format : uint8_t { kText, kJson };

/// One value of a line. What the views see has to live for the call only.
struct Field {
  std::string_view name;  // snake_case, ours.
  std::variant<std::string_view, int64_t, double, bool> value;
};

// Longer texts are cut, counted after escaping. So that a line fits in one write to a pipe (4096
// bytes), a line should have at most six texts from outside.
inline constexpr size_t kMessageBytesMax = 2048;
inline constexpr size_t kFieldBytesMax = 256;

struct Line {
  std::chrono::system_clock::time_point time;
  std::string_view level;      // "info".
  std::string_view component;  // "http".
  std::string_view message;
  std::span<const Field> fields;
};

/// {"time":"2026-11-30T16:45:19.123Z","level":"info","component":"http","message":"request",...}
/// and a line end. Numbers that JSON does not have are null.
std::string JsonLine(const Line& line);
/// "2026-11-30T16:45:19.123Z info http: request status=200 path="/a b"" and a line end.
std::string TextLine(const Line& line);

/// Appends `text` as the inside of a JSON string: quotes, backslashes, all control characters
/// (C0, DEL, C1) and the Unicode line ends escaped, what is no UTF-8 as U+FFFD. At most `bytes_max`
/// bytes; what is cut ends in "...".
void AppendEscaped(std::string_view text, size_t bytes_max, std::string* out);

}  // namespace tessera::log
