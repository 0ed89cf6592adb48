// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence.h"

#include <algorithm>
#include <span>

namespace tessera::engine {

std::span<const TokenId> Sequence::Reusable() const {
  // The last one of these is computed in any case; the first has to be there.
  return std::span(tokens).first(is_scoring() ? static_cast<size_t>(std::max<int64_t>(scored, 1))
                                              : tokens.size());
}

SequenceView Sequence::View(const PrefixMatch& match, TimePoint now) const {
  SequenceView view{.id = id,
                    .is_running = is_running,
                    .tokens = static_cast<int64_t>(tokens.size()),
                    .computed = computed,
                    .pages = pages.ids,
                    .needs_all_logits = is_scoring(),
                    .is_ready = !report.has_value() && !awaits_mask && !awaits_pages(now),
                    .priority = request.priority,
                    .drafts = std::ssize(drafts)};
  // What it has to compute anyway is nothing to wait for.
  if (!is_scoring()) view.page_keys = page_keys;
  if (is_running) return view;
  view.computed = match.tokens;
  view.shared_pages = match.pages;
  view.idle_pages = match.idle_pages;
  return view;
}

void Sequence::UpdatePageKeys(int64_t page_tokens) {
  if (!shares_prefix) return;
  const auto size = static_cast<size_t>(page_tokens);
  while ((page_keys.size() + 1) * size <= tokens.size()) {
    const uint64_t before = page_keys.empty() ? 0 : page_keys.back();
    page_keys.push_back(PageKey(before, std::span(tokens).subspan(page_keys.size() * size, size)));
  }
}

void Sequence::UpdatePageHashes(const PageHash& root, int64_t page_tokens) {
  const auto size = static_cast<size_t>(page_tokens);
  while ((page_hashes.size() + 1) * size <= tokens.size()) {
    const PageHash& before = page_hashes.empty() ? root : page_hashes.back();
    page_hashes.push_back(
        HashOfPage(before, std::span(tokens).subspan(page_hashes.size() * size, size)));
  }
}

Finish Sequence::MakeFinish(FinishReason reason, Status status, int64_t kept_tokens,
                            TimePoint now) const {
  const TimePoint scheduled = first_scheduled.value_or(now);
  const TimePoint first = first_token.value_or(now);
  return {.reason = reason,
          .status = std::move(status),
          .prompt_tokens = prompt_tokens(),
          .generated_tokens = kept_tokens < 0 ? generated() : std::min(kept_tokens, generated()),
          .cached_tokens = cached_tokens,
          .cache_miss = cache_miss,
          .queue = scheduled - request.arrival,
          .prefill = first - scheduled,
          .decode = first_token.has_value() ? last_token - first : Duration::zero()};
}

}  // namespace tessera::engine
