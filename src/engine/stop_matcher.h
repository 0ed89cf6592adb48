// SPDX-License-Identifier: Apache-2.0
//
// StopMatcher: finds stop strings in text that arrives in pieces. It gives text out as soon as that
// text can no longer be part of a stop string, and never a byte of one. The match that ends first
// wins; of those that end together, the longest. The result does not depend on how the text was
// cut. One automaton a string (Knuth, Morris and Pratt, 1977): constant work a byte. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::engine {

class StopMatcher {
 public:
  /// `stops`: none empty. `is_included`: the text given out ends with the stop string found.
  StopMatcher(std::vector<std::string> stops, bool is_included);

  /// Returns the text that became certain. After a match, nothing more ever.
  std::string Push(std::string_view text);
  /// The text held back, once no more will come; empty after a match.
  std::string Flush();
  bool matched() const { return !match_.empty(); }
  /// The stop string found; empty before.
  const std::string& match() const { return match_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // [length]: longest border of text[0, i].
    size_t state = 0;              // How much of `text` the input ends with.
  };
  static void Advance(Pattern* pattern, char byte);

  std::vector<Pattern> patterns_;
  const bool is_included_;
  std::string match_;
  std::string held_;
};

}  // namespace tessera::engine
