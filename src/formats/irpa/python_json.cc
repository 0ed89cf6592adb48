// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/python_json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace tessera::formats::irpa {
namespace {

/// The code point that begins at text[i], which is moved behind it.
uint32_t NextCodePoint(std::string_view text, size_t& i) {
  const auto first = static_cast<unsigned char>(text[i++]);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  uint32_t code = first & (0x3fU >> more);
  for (int k = 0; k < more && i < text.size(); ++k)
    code = code << 6 | (static_cast<unsigned char>(text[i++]) & 0x3f);
  return code;
}

void AppendString(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const uint32_t code = NextCodePoint(text, i);
    switch (code) {
      case '"':
        out += "\\\"";
        continue;
      case '\\':
        out += "\\\\";
        continue;
      case '\n':
        out += "\\n";
        continue;
      case '\r':
        out += "\\r";
        continue;
      case '\t':
        out += "\\t";
        continue;
      case '\b':
        out += "\\b";
        continue;
      case '\f':
        out += "\\f";
        continue;
      default:
        break;
    }
    if (code >= 0x20 && code < 0x7f) {
      out += static_cast<char>(code);
    } else if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      const uint32_t rest = code - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    }
  }
  out += '"';
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void Append(const json::Value& value, int depth) {
    if (const json::Object* object = value.if_object()) return AppendObject(*object, depth);
    if (const json::Array* array = value.if_array()) return AppendArray(*array, depth);
    if (value.is_string()) return AppendString(out_, value.get_string());
    if (value.is_double()) {
      out_ += PythonFloat(value.get_double());
    } else {
      out_ += json::Serialize(value);  // Integers, true, false, null: spelled alike.
    }
  }
  std::string Take() && { return std::move(out_); }

 private:
  void NewLine(int depth) {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(depth * indent_), ' ');
  }
  void Separate(bool first, int depth) {
    if (!first) out_ += indent_ == 0 ? ", " : ",";
    NewLine(depth);
  }

  void AppendObject(const json::Object& object, int depth) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, member] : object) {
      Separate(first, depth + 1);
      first = false;
      AppendString(out_, key);
      out_ += ": ";
      Append(member, depth + 1);
    }
    if (!object.empty()) NewLine(depth);
    out_ += '}';
  }

  void AppendArray(const json::Array& array, int depth) {
    out_ += '[';
    bool first = true;
    for (const json::Value& element : array) {
      Separate(first, depth + 1);
      first = false;
      Append(element, depth + 1);
    }
    if (!array.empty()) NewLine(depth);
    out_ += ']';
  }

  std::string out_;
  int indent_;
};

}  // namespace

std::string PythonFloat(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t mark = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + mark + (text[mark + 1] == '+' ? 2 : 1), end, exponent);
  // repr() turns to exponents below 1e-4 and from 1e16 on; in between there is always a point.
  if (exponent < -4 || exponent >= 16)
    return fmt::format("{}e{}{:02}", text.substr(0, mark), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  std::string digits;
  for (const char c : text.substr(0, mark))
    if (c >= '0' && c <= '9') digits += c;
  const std::string sign = text.front() == '-' ? "-" : "";
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string PythonJson(const json::Value& value, int indent) {
  Writer writer(indent);
  writer.Append(value, 0);
  return std::move(writer).Take();
}

}  // namespace tessera::formats::irpa
