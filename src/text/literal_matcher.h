// SPDX-License-Identifier: Apache-2.0
//
// LiteralMatcher: which of a few texts comes next, byte by byte, where white space may stand
// anywhere or nowhere: models write "<tool_call>{" for "<tool_call>\n{". The first text that is
// complete wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

class LiteralMatcher {
 public:
  enum class Step : uint8_t { kMore, kMatched, kFailed };

  LiteralMatcher() = default;
  explicit LiteralMatcher(std::span<const std::string> alternatives);

  /// An alternative that needs no byte at all, if there is one: its index, else npos.
  size_t Empty() const;
  /// Requires that neither a match nor a failure came before.
  Step Push(char c);
  /// After kMatched.
  size_t matched() const { return matched_; }
  /// All bytes pushed, the one that failed included.
  const std::string& taken() const { return taken_; }

  static constexpr size_t npos = std::string_view::npos;

 private:
  struct Candidate {
    std::string text;  // Without white space.
    bool is_open = true;
  };
  std::vector<Candidate> candidates_;
  size_t position_ = 0;
  size_t matched_ = npos;
  std::string taken_;
};

}  // namespace tessera::text
