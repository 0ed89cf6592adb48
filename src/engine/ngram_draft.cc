// SPDX-License-Identifier: Apache-2.0
#include "engine/ngram_draft.h"

#include <algorithm>

namespace tessera::engine {

std::vector<text::TokenId> NgramDraft(std::span<const text::TokenId> tokens, int64_t count) {
  const auto size = std::ssize(tokens);
  if (size <= kMatchTokensMin || count <= 0) return {};
  const auto at = [tokens](int64_t i) { return tokens[static_cast<size_t>(i)]; };
  int64_t best = kMatchTokensMin - 1;
  int64_t next = 0;  // What followed the best occurrence.
  // `end` is the last token of an occurrence; latest first, so that only a longer one is better.
  for (int64_t end = size - 2; end >= best && best < kMatchTokensMax; --end) {
    if (at(end) != at(size - 1) || at(end - 1) != at(size - 2)) continue;
    int64_t length = 2;
    while (length < kMatchTokensMax && length <= end && at(end - length) == at(size - 1 - length))
      ++length;
    if (length <= best) continue;
    best = length;
    next = end + 1;
  }
  if (best < kMatchTokensMin) return {};
  const auto found = tokens.subspan(static_cast<size_t>(next));
  return {found.begin(), found.begin() + std::min(count, std::ssize(found))};
}

}  // namespace tessera::engine
