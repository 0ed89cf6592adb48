// SPDX-License-Identifier: Apache-2.0
#include "formats/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace tessera::formats {
namespace {

// Bytes of the well-formed UTF-8 sequence (Unicode, table 3-7) at the front of `text`; 0 for none.
size_t SequenceBytes(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<uint8_t>(text[i])) : 0u;
  };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;   // No overlong forms,
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;  // no surrogates,
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;  // nothing past U+10FFFF.
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

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
    const size_t size = SequenceBytes(text.substr(at));
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
    const size_t size = SequenceBytes(text.substr(at));
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
