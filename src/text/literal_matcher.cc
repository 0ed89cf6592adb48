// SPDX-License-Identifier: Apache-2.0
#include "text/literal_matcher.h"

#include "text/json_scanner.h"

namespace tessera::text {

LiteralMatcher::LiteralMatcher(std::span<const std::string> alternatives) {
  for (const std::string& alternative : alternatives) {
    Candidate candidate{.text = alternative};
    std::erase_if(candidate.text, IsJsonSpace);
    candidates_.push_back(std::move(candidate));
  }
}

size_t LiteralMatcher::Empty() const {
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (candidates_[i].text.empty()) return i;
  return npos;
}

LiteralMatcher::Step LiteralMatcher::Push(char c) {
  taken_ += c;
  if (IsJsonSpace(c)) return Step::kMore;
  bool any = false;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& candidate = candidates_[i];
    candidate.is_open =
        candidate.is_open && position_ < candidate.text.size() && candidate.text[position_] == c;
    if (!candidate.is_open) continue;
    any = true;
    if (position_ + 1 == candidate.text.size()) {
      matched_ = i;
      return Step::kMatched;
    }
  }
  ++position_;
  return any ? Step::kMore : Step::kFailed;
}

}  // namespace tessera::text
