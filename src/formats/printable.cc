// SPDX-License-Identifier: Apache-2.0
#include "formats/printable.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/utf8.h"

namespace tessera::formats {
namespace {

// C0, DEL, and C1 as UTF-8 writes it (0xc2 0x80 to 0xc2 0x9f).
bool IsControl(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(sequence[1]) < 0xa0;
}

void AppendEscaped(std::string& out, std::string_view bytes) {
  if (bytes == "\n") {
    out += "\\n";
  } else if (bytes == "\t") {
    out += "\\t";
  } else {
    for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t size = Utf8CharacterBytes(text.substr(at));
    const std::string_view sequence = text.substr(at, size == 0 ? 1 : size);
    if (at + sequence.size() > max_bytes) {
      out += fmt::format("... ({} bytes)", text.size());
      break;
    }
    if (size == 0 || IsControl(sequence)) {
      AppendEscaped(out, sequence);
    } else {
      out += sequence;
    }
    at += sequence.size();
  }
  return out;
}

std::string ValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t size = Utf8CharacterBytes(text.substr(at));
    if (size == 0) {
      out += "\xef\xbf\xbd";
      ++at;
    } else {
      out += text.substr(at, size);
      at += size;
    }
  }
  return out;
}

}  // namespace tessera::formats
