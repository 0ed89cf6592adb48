// SPDX-License-Identifier: Apache-2.0
#include "cli/bounded_lines.h"

namespace tessera::cli {

std::optional<BoundedLines::Line> BoundedLines::Next() {
  constexpr size_t kKeptBytes = 1 << 20;  // One long line should not hold its memory for ever.
  if (line_.capacity() > kKeptBytes) line_ = std::string();
  line_.clear();
  Line line;
  int byte;
  while ((byte = ::getc_unlocked(stream_)) != EOF && byte != '\n') {
    ++line.bytes;
    if (line.bytes <= max_bytes_) line_ += static_cast<char>(byte);
  }
  if (byte == EOF && (line.bytes == 0 || std::ferror(stream_) != 0)) return std::nullopt;
  line.too_long = line.bytes > max_bytes_;
  if (line.too_long) return line;
  line.text = line_;
  if (line.text.ends_with('\r')) line.text.remove_suffix(1);
  return line;
}

}  // namespace tessera::cli
