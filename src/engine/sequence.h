// SPDX-License-Identifier: Apache-2.0
//
// Sequence: one request's state on the engine thread. Plain data; engine_core.cc moves it along.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"

namespace tessera::engine {

struct Sequence {
  Sequence(RequestId request_id, Request r)
      : id(request_id),
        request(std::move(r)),
        tokens(request.prompt),
        history(request.sampling, request.prompt) {}

  int64_t prompt_tokens() const { return static_cast<int64_t>(request.prompt.size()); }
  int64_t generated() const { return static_cast<int64_t>(tokens.size()) - prompt_tokens(); }
  SequenceView view() const {
    return {id, is_running, static_cast<int64_t>(tokens.size()), computed,
            static_cast<int64_t>(pages.size())};
  }

  RequestId id;
  Request request;
  std::vector<TokenId> tokens;  // Prompt, then generated.
  int64_t computed = 0;         // Tokens whose KV is in `pages`.
  std::vector<PageId> pages;
  bool is_running = false;
  TokenHistory history;
  std::optional<TimePoint> first_scheduled;
  std::optional<TimePoint> first_token;
  TimePoint last_token{};
};

}  // namespace tessera::engine
