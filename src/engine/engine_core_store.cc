// SPDX-License-Identifier: Apache-2.0
//
// EngineCore and the page store: pages that the prefix cache gives up go there, and before a
// sequence is admitted, what the store has of it is read ahead and adopted by the cache. The
// scheduler knows nothing of it: a sequence that waits for pages is not ready, and finds them in
// the cache when it is. Reading is given up when computing would have been as fast; what comes
// later is still taken as long as the sequence waits for its place.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "engine/engine_core.h"

namespace tessera::engine {

std::optional<PageSpill> EngineCore::MakeSpill() {
  if (options_.store == nullptr) return std::nullopt;
  return PageSpill{.root = options_.store->root(),
                   .take = [this](PageId page, const PageHash& hash) {
                     options_.store->Put(hash, session_->PageBytes(page), spill_patience_);
                   }};
}

void EngineCore::SpillAll(Duration patience) {
  if (options_.store == nullptr) return;
  TESSERA_CHECK(sequences_.empty());
  const TimePoint end = clock_->Now() + patience;
  spill_patience_ = patience;
  cache_.SpillAll([&] { return clock_->Now() < end; });
  spill_patience_ = {};
  options_.store->Flush(std::max(end - clock_->Now(), Duration::zero()));
  UpdateGauges();
}

void EngineCore::FetchPages() {
  if (options_.store == nullptr) return;
  const bool is_alone =
      std::ranges::none_of(sequences_, [](const auto& sequence) { return sequence->is_running; });
  int64_t budget = is_alone ? INT64_MAX : std::max<int64_t>(kStoreBytesPerStep / PageSize(), 1);
  int64_t room = cache_.available();
  int64_t readers = 0;
  PageSet coming;
  for (const size_t index : order_) {
    Sequence& sequence = *sequences_[index];
    if (sequence.is_running || sequence.report.has_value() || !sequence.shares_prefix) continue;
    if (!sequence.fetch.has_value()) BeginFetch(&sequence);
    const int64_t shared = NoteComing(sequence, &coming);
    room -= PagesFor(std::ssize(sequence.tokens), shape_.page_tokens) - shared;
    if (sequence.fetch->next == sequence.fetch->end) continue;
    if (!sequence.fetch->is_asked) {
      // Pages for those behind would only drive out those of the ones before.
      const bool is_shared = shared == sequence.fetch->end - sequence.fetch->next;
      if (room < 0 || (readers >= kReadAheadSequences && !is_shared)) continue;
      AskFirst(&sequence);
    }
    ++readers;
    AskForPages(&sequence);
    budget -= TakeUpPages(&sequence, budget);
    AskForPages(&sequence);  // There is room again.
  }
}

int64_t EngineCore::NoteComing(const Sequence& sequence, PageSet* coming) {
  int64_t known = 0;
  for (int64_t page = sequence.fetch->next; page < sequence.fetch->end; ++page)
    known += coming->insert(sequence.page_hashes[static_cast<size_t>(page)]).second ? 0 : 1;
  return known;
}

void EngineCore::BeginFetch(Sequence* sequence) {
  sequence->UpdatePageHashes(options_.store->root(), shape_.page_tokens);
  sequence->fetch.emplace();
  LookInStore(sequence);
  // The last token is computed in any case.
  const int64_t wanted = (std::ssize(sequence->Reusable()) - 1) / shape_.page_tokens;
  stats_.store_misses += wanted - sequence->fetch->end;
}

void EngineCore::LookInStore(Sequence* sequence) {
  PageFetch& fetch = *sequence->fetch;
  const std::span<const TokenId> tokens = sequence->Reusable();
  fetch.next = fetch.end = cache_.Find(tokens).pages;
  const int64_t wanted = (std::ssize(tokens) - 1) / shape_.page_tokens;
  while (fetch.end < wanted &&
         options_.store->Contains(sequence->page_hashes[static_cast<size_t>(fetch.end)]))
    ++fetch.end;
}

void EngineCore::AskFirst(Sequence* sequence) {
  LookInStore(sequence);  // It may have waited long for its turn.
  PageFetch& fetch = *sequence->fetch;
  fetch.is_asked = true;
  const int64_t pages = fetch.end - fetch.next;
  StepLoad load;
  load.Add(pages * shape_.page_tokens, fetch.next * shape_.page_tokens);
  const TimePoint now = clock_->Now();
  if (!step_cost_.is_known()) {
    fetch.patience = now + kStorePatienceDefault;
  } else if (const Duration computing = step_cost_.Predict(load);
             options_.store->ReadTime(pages) < computing) {
    fetch.patience = now + computing;
  }  // Else it does not wait; what has come by its turn is taken nevertheless.
}

void EngineCore::AskForPages(Sequence* sequence) {
  PageFetch& fetch = *sequence->fetch;
  while (std::ssize(fetch.reads) < std::min(fetch.end - fetch.next, kReadAheadPages)) {
    const int64_t page = fetch.next + std::ssize(fetch.reads);
    auto read = options_.store->Get(sequence->page_hashes[static_cast<size_t>(page)]);
    if (read == nullptr) return;
    fetch.reads.push_back(std::move(read));
  }
}

int64_t EngineCore::TakeUpPages(Sequence* sequence, int64_t most) {
  PageFetch& fetch = *sequence->fetch;
  int64_t ready = 0;
  for (; ready < std::min(std::ssize(fetch.reads), most); ++ready) {
    const PageRead& read = *fetch.reads[static_cast<size_t>(ready)];
    if (!read.is_ready()) break;
    if (!read.bytes().empty()) continue;
    fetch.end = fetch.next + ready;
    fetch.is_lost = true;
    break;
  }
  if (ready == 0 && !fetch.is_lost) return 0;
  int64_t copied = 0;
  const auto hashes = std::span(sequence->page_hashes)
                          .subspan(static_cast<size_t>(fetch.next), static_cast<size_t>(ready));
  const int64_t known =
      cache_.Adopt(sequence->Reusable(), fetch.next, hashes, [&](int64_t i, PageId page) {
        const ByteSpan bytes = fetch.reads[static_cast<size_t>(i)]->bytes();
        const std::span<std::byte> to = session_->PageBytes(page);
        TESSERA_CHECK(bytes.size() == to.size());
        std::memcpy(to.data(), bytes.data(), bytes.size());
        ++copied;
      });
  stats_.store_hits += copied;
  fetch.next += known;
  fetch.reads.erase(fetch.reads.begin(), fetch.reads.begin() + known);
  if (known < ready) fetch.end = fetch.next;  // The pages before are gone, or none is to be had.
  if (fetch.next >= fetch.end) fetch.reads.clear();
  return copied;
}

void EngineCore::EndFetch(Sequence* sequence) {
  if (!sequence->fetch.has_value()) return;
  const CacheMiss::Reason reason = sequence->fetch->Miss();
  const int64_t position = sequence->fetch->next * shape_.page_tokens;
  CacheMiss& miss = sequence->cache_miss;
  if (reason != CacheMiss::Reason::kNone && !sequence->first_scheduled.has_value() &&
      miss.position / shape_.page_tokens == position / shape_.page_tokens)
    miss.reason = reason;
  if (reason == CacheMiss::Reason::kSlowStore) ++stats_.store_given_up;
  sequence->fetch.reset();
}

std::optional<TimePoint> EngineCore::wake_at() const {
  std::optional<TimePoint> earliest;
  if (options_.store == nullptr) return earliest;
  const TimePoint now = clock_->Now();
  for (const auto& sequence : sequences_)
    if (sequence->awaits_pages(now) &&
        (!earliest.has_value() || sequence->fetch->patience < *earliest))
      earliest = sequence->fetch->patience;
  return earliest;
}

}  // namespace tessera::engine
