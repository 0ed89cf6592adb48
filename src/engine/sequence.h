// SPDX-License-Identifier: Apache-2.0
//
// Sequence: one request's state on the engine thread. Plain data; engine_core.cc moves it along.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/beam_search.h"
#include "engine/draft_policy.h"
#include "engine/mask_worker.h"
#include "engine/page_fetch.h"
#include "engine/prefix_cache.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"

namespace tessera::engine {

/// The sequences of one request's beam search, and what they have found.
struct BeamGroup {
  BeamGroup(RequestId leader, const Request& request);

  const RequestId id;
  BeamSearch search;
  std::vector<std::shared_ptr<Sink>> sinks;  // Best first.
};

struct Sequence {
  Sequence(RequestId request_id, Request r)
      : id(request_id),
        request(std::move(r)),
        tokens(request.prompt),
        scored(FirstScored(request)),
        history(request.sampling, request.prompt) {}

  int64_t prompt_tokens() const { return static_cast<int64_t>(request.prompt.size()); }
  int64_t generated() const { return static_cast<int64_t>(tokens.size()) - prompt_tokens(); }
  /// Logits or hidden states of the prompt itself are still wanted.
  bool is_scoring() const { return scored < prompt_tokens(); }
  /// The beginning that may come from the prefix cache: not what is still to be scored.
  std::span<const TokenId> Reusable() const;
  /// As the scheduler sees it; waiting, `match` is what the cache has of it.
  SequenceView View(const PrefixMatch& match, TimePoint now) const;
  /// Brings page_keys up to date with the tokens.
  void UpdatePageKeys(int64_t page_tokens);
  /// And page_hashes.
  void UpdatePageHashes(const PageHash& root, int64_t page_tokens);
  /// It waits for pages from the store rather than compute them.
  bool awaits_pages(TimePoint now) const { return fetch.has_value() && fetch->IsAwaited(now); }
  /// What the client hears when it ends now.
  Finish MakeFinish(FinishReason reason, Status status, int64_t kept_tokens, TimePoint now) const;

  /// The first token has no logprob; of a mean it is a part.
  static int64_t FirstScored(const Request& request) {
    if (request.pooling == Pooling::kMean) return 0;
    return request.prompt_logprobs >= 0 ? 1 : static_cast<int64_t>(request.prompt.size());
  }

  RequestId id;
  Request request;
  std::vector<TokenId> tokens;  // Prompt, then generated.
  int64_t computed = 0;         // Tokens whose KV is in `pages`.
  SequencePages pages;
  bool is_running = false;
  bool shares_prefix = false;         // Uses the prefix cache and leaves its pages to it.
  std::vector<uint64_t> page_keys;    // As SequenceView; empty when it does not share.
  std::vector<PageHash> page_hashes;  // Of whole pages, the first ones; as far as was asked for.
  std::optional<PageFetch> fetch;     // Waiting: of pages that are in the store.
  /// Leading prompt tokens of which nothing is wanted any more, 0 to prompt_tokens.
  int64_t scored;
  PromptLogprobs prompt_logprobs;  // Of those scored, until they are handed over.
  std::vector<double> pooled;   // Sum of the hidden states of `scored` tokens; or the last one's.
  bool is_prompt_done = false;  // It was complete once: it has been counted.
  int64_t cached_tokens = 0;    // Found in the cache when it was first scheduled.
  CacheMiss cache_miss;         // And why not more.
  TokenHistory history;
  DraftPolicy draft_policy;
  /// Guesses of what follows, to be checked in the next step; and with its last token before them.
  std::vector<TokenId> drafts;
  std::vector<TokenId> draft_input;
  std::shared_ptr<BeamGroup> beams;  // Null: it is alone.
  size_t beam = 0;                   // Which of the live ones.
  /// What may follow its last token; until all beams have theirs it has nothing to compute.
  std::optional<BeamReport> report;
  std::shared_ptr<SequenceMask> mask;  // Null: unconstrained.
  bool awaits_mask = false;            // Computes nothing until the mask is ready.
  std::optional<TimePoint> first_scheduled;
  std::optional<TimePoint> first_token;
  TimePoint last_token{};
};

}  // namespace tessera::engine
