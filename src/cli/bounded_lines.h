// SPDX-License-Identifier: Apache-2.0
//
// BoundedLines: lines of a stream, none of which may fill the memory. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::cli {

class BoundedLines {
 public:
  /// `stream` is the caller's and outlives this object.
  BoundedLines(std::FILE* stream, uint64_t max_bytes) : stream_(stream), max_bytes_(max_bytes) {}

  struct Line {
    std::string_view text;  // Without its line end; valid until the next call. Empty if too long.
    uint64_t bytes = 0;     // Without the '\n'.
    bool too_long = false;  // More than max_bytes; all of it was skipped.
  };
  /// Nothing at the end of the stream or at an error (std::ferror tells).
  std::optional<Line> Next();

 private:
  std::FILE* stream_;
  uint64_t max_bytes_;
  std::string line_;
};

}  // namespace tessera::cli
