// SPDX-License-Identifier: Apache-2.0
#include "base/log_line.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/utf8.h"

namespace tessera::log {
namespace {

constexpr std::string_view kCut = "...";

/// Of a well-formed character of two or three bytes.
uint32_t CodePoint(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(character[i]) & 0x3F; };
  return character.size() == 2
             ? (static_cast<uint32_t>(character[0]) & 0x1F) << 6 | byte(1)
             : (static_cast<uint32_t>(character[0]) & 0x0F) << 12 | byte(1) << 6 | byte(2);
}

/// The character as it stands in a JSON string, or (without `marks`) in a sentence for people,
/// where quotes and backslashes stand for themselves.
std::string Escaped(std::string_view character, bool marks) {
  if (character.size() == 1) {
    const auto byte = static_cast<unsigned char>(character[0]);
    if (marks && (byte == '"' || byte == '\\')) return {'\\', character[0]};
    if (byte == '\n') return "\\n";
    if (byte < 0x20 || byte == 0x7F) return fmt::format("\\u{:04x}", byte);
  } else if (character.size() < 4) {
    const uint32_t point = CodePoint(character);
    // C1 controls, and the line ends that only Unicode knows.
    if (point < 0xA0 || point == 0x2028 || point == 0x2029) return fmt::format("\\u{:04x}", point);
  }
  return std::string(character);
}

/// RFC 3339 in UTC with milliseconds.
std::string Timestamp(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
  const int64_t seconds = ms >= 0 ? ms / 1000 : (ms - 999) / 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                     ms - seconds * 1000);
}

void AppendSafe(std::string_view text, size_t bytes_max, bool marks, std::string* out) {
  const size_t begin = out->size();
  size_t fits = begin;  // Where the mark of a cut still has room.
  while (!text.empty()) {
    const size_t bytes = Utf8CharacterBytes(text);
    const std::string piece = bytes == 0 ? "\uFFFD" : Escaped(text.substr(0, bytes), marks);
    if (out->size() - begin + piece.size() > bytes_max) {
      out->resize(fits);
      *out += kCut;
      return;
    }
    *out += piece;
    if (out->size() - begin + kCut.size() <= bytes_max) fits = out->size();
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
}

void AppendQuoted(std::string_view text, size_t bytes_max, std::string* out) {
  *out += '"';
  AppendEscaped(text, bytes_max, out);
  *out += '"';
}

std::string Number(double value) {
  return std::isfinite(value) ? fmt::format("{:.3f}", value) : "null";
}

/// Of logfmt: stands for itself without quotes.
bool IsPlain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < 0x7F && c != '"' && c != '=' && c != '\\';
  });
}

void AppendValue(const Field& field, Format format, std::string* out) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    if (format == Format::kText && IsPlain(*text) && text->size() <= kFieldBytesMax) {
      *out += *text;
    } else {
      AppendQuoted(*text, kFieldBytesMax, out);
    }
  } else if (const auto* number = std::get_if<int64_t>(&field.value)) {
    fmt::format_to(std::back_inserter(*out), "{}", *number);
  } else if (const auto* real = std::get_if<double>(&field.value)) {
    *out += Number(*real);
  } else {
    *out += std::get<bool>(field.value) ? "true" : "false";
  }
}

}  // namespace

void AppendEscaped(std::string_view text, size_t bytes_max, std::string* out) {
  AppendSafe(text, bytes_max, /*marks=*/true, out);
}

std::string JsonLine(const Line& line) {
  std::string out =
      fmt::format(R"({{"time":"{}","level":"{}","component":)", Timestamp(line.time), line.level);
  AppendQuoted(line.component, kFieldBytesMax, &out);
  out += R"(,"message":)";
  AppendQuoted(line.message, kMessageBytesMax, &out);
  for (const Field& field : line.fields) {
    out += ',';
    AppendQuoted(field.name, kFieldBytesMax, &out);
    out += ':';
    AppendValue(field, Format::kJson, &out);
  }
  out += "}\n";
  return out;
}

std::string TextLine(const Line& line) {
  std::string out = fmt::format("{} {} ", Timestamp(line.time), line.level);
  AppendSafe(line.component, kFieldBytesMax, /*marks=*/false, &out);
  out += ": ";
  AppendSafe(line.message, kMessageBytesMax, /*marks=*/false, &out);
  for (const Field& field : line.fields) {
    out += ' ';
    out += field.name;
    out += '=';
    AppendValue(field, Format::kText, &out);
  }
  out += '\n';
  return out;
}

}  // namespace tessera::log
