// SPDX-License-Identifier: Apache-2.0
//
// What goes into the engine and what comes out of it: a request is one prompt (token ids) with its
// sampling parameters and a sink for the tokens it makes. Text, stop strings and JSON live above
// (output_processor.h, server/). Values here are plain; ownership passes with Submit().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/token_constraint.h"
#include "text/tokenizer.h"

namespace tessera::engine {

using text::TokenId;
using RequestId = uint64_t;

/// "Don't repeat yourself" (p-e-w, text-generation-webui pull request 5677, 2024): a token that
/// would go on with a repetition is made less likely, the more so the longer the repetition is.
struct DryParams {
  double multiplier = 0;       // >= 0; 0 = off.
  double base = 1.75;          // >= 1.
  int64_t allowed_length = 2;  // >= 1; the shortest repetition that costs: multiplier.
  int64_t last_tokens = -1;    // Of prompt and answer, how many are looked at; -1 = all.
  /// By id: no repetition reaches across these tokens; those beyond its end are none of them.
  /// Null: across all. Shared, immutable.
  std::shared_ptr<const std::vector<bool>> breakers;
};

/// "Exclude top choices" (p-e-w, text-generation-webui pull request 6335, 2024): sometimes all
/// likely tokens but the least likely of them are taken out.
struct XtcParams {
  double probability = 0;  // [0, 1]; how often. 0 = off.
  double threshold = 0.1;  // [0, 1]; a token is likely from here on. Above 0.5 nothing happens.
};

/// How the next token is chosen. Defaults mean "off"; see sampler.h for the order of the steps.
struct SamplingParams {
  double temperature = 1.0;         // >= 0; 0 = greedy (largest logit, lowest id on a tie).
  double min_p = 0.0;               // [0, 1]; keeps p >= min_p * max p.
  double typical_p = 1.0;           // (0, 1]; 1 = off.
  int64_t top_k = 0;                // <= 0 = off.
  double top_p = 1.0;               // (0, 1]; 1 = off.
  double repetition_penalty = 1.0;  // > 0; over prompt and generated tokens, each id once.
  double frequency_penalty = 0.0;   // Per occurrence among the generated tokens.
  double presence_penalty = 0.0;    // Once per id among the generated tokens.
  std::vector<std::pair<TokenId, double>> logit_bias;
  DryParams dry = {};
  XtcParams xtc = {};
  uint64_t seed = 0;    // The caller draws one when the client named none.
  uint64_t stream = 0;  // Which of the n choices: same seed, other numbers.
};

/// When the sequence ends.
struct StopParams {
  int64_t max_tokens = 16;  // >= 1; with prompt_logprobs also 0: nothing but these. 0 with pooling.
  int64_t min_tokens = 0;   // Before that many, ending tokens are not sampled.
  std::vector<TokenId> eos_ids;   // End of sequence; empty when the client ignores them.
  std::vector<TokenId> stop_ids;  // More ids that end the sequence.
};

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0;
};

/// Log-probabilities under the model's own distribution (log-softmax of the raw logits).
struct Logprobs {
  float chosen = 0;
  int64_t rank = 1;               // Of the chosen one: 1 + how many are likelier.
  std::vector<TokenLogprob> top;  // Descending, lower id first on a tie.
};

/// Of every prompt token but the first, which nothing comes before.
using PromptLogprobs = std::vector<Logprobs>;  // [prompt tokens - 1]

struct TokenOutput {
  TokenId id = 0;
  /// An EOS or stop id: counted as generated, not part of the text.
  bool is_end = false;
  std::optional<Logprobs> logprobs;
};

enum class FinishReason : uint8_t {
  kStop,       // An ending token, or a stop string found by the consumer.
  kLength,     // max_tokens or the context length.
  kCancelled,  // The client went away, or the server shuts down.
  kDeadline,   // The request's own deadline passed.
  kError,      // The step failed; `status` says why.
};
std::string_view FinishReasonName(FinishReason reason);

/// Why the prefix cache did not have all of a prompt.
struct CacheMiss {
  enum class Reason : uint8_t {
    kNone,         // It had all but the last token, which is always computed.
    kOff,          // The cache is off, or the request did not want it.
    kNeverStored,  // Nothing that is stored goes on behind `position`.
    kDiffers,      // What is stored goes on with another token there.
    kEvicted,      // It was stored, and given up for other pages.
    kLogprobs,     // The logits of the prompt itself are wanted: all of it is computed.
    kSlowStore,    // It is on disk, and reading it would have taken longer than computing it.
    kLostInStore,  // It was on disk, and was found damaged or gone.
  };
  Reason reason = Reason::kNone;
  int64_t position = 0;  // First token of the prompt that was not found.
};
std::string_view CacheMissName(CacheMiss::Reason reason);

struct Finish {
  FinishReason reason = FinishReason::kStop;
  Status status;  // Not ok for kCancelled, kDeadline and kError.
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  int64_t cached_tokens = 0;  // Prompt tokens whose KV was already there.
  CacheMiss cache_miss;       // Of the first time that it was scheduled.
  Duration queue{};           // Arrival to first scheduled.
  Duration prefill{};         // First scheduled to first token.
  Duration decode{};          // First to last token.
};

/// How the last hidden states of a prompt become one vector.
enum class Pooling : uint8_t {
  kNone,  // They are not wanted.
  kMean,  // Of all tokens, each the same.
  kLast,  // The last token's.
};

/// How far the computing of a prompt is.
struct PrefillProgress {
  int64_t total = 0;      // Prompt tokens.
  int64_t cached = 0;     // Of these, found in the prefix cache.
  int64_t processed = 0;  // Cached or computed by now.
  Duration elapsed{};     // Since the request was first scheduled.
};

/// Receives one request's events. Called on the engine thread, in order, OnFinish exactly once and
/// last; must return at once and never call back into the engine core (Engine's calls are fine).
class Sink {
 public:
  virtual ~Sink() = default;
  /// After every step that computed a part of the prompt, the last part too, when the request asked
  /// for it.
  virtual void OnPrefill(PrefillProgress /*progress*/) {}
  /// Once, when the request asked for it: [hidden_size].
  virtual void OnEmbedding(std::vector<float> /*pooled*/) {}
  /// Once, before any token, when the request asked for them.
  virtual void OnPrompt(PromptLogprobs /*logprobs*/) {}
  virtual void OnToken(TokenOutput token) = 0;
  virtual void OnFinish(Finish finish) = 0;
  /// After all sinks have heard of a step, to each that heard something: time to wake whoever works
  /// on it, once for all.
  virtual void OnStepEnd() {}
};

/// Beam search: the `width` likeliest continuations are followed side by side. Deterministic: of
/// the sampling values only logit_bias and the penalties have a meaning (beam_search.h).
struct BeamParams {
  int width = 1;                // 1 to kBeamsMax.
  double length_penalty = 1.0;  // A beam's score is its log-probability / length ^ length_penalty.
  bool stops_early = false;     // True: ends with the `width`th complete beam, whatever may follow.
  /// The best beam goes to the request's own sink, the next ones to these: fewer than `width`.
  std::vector<std::shared_ptr<Sink>> more_sinks;
};

/// Whom the engine shares its time fairly between (one API key, say). Opaque.
using ClientId = uint64_t;

struct Request {
  std::vector<TokenId> prompt;  // At least one.
  SamplingParams sampling;
  StopParams stop;
  int top_logprobs = -1;     // -1 = none, 0 = the chosen token's only.
  int prompt_logprobs = -1;  // The same for the prompt's tokens.
  std::optional<BeamParams> beams;
  int32_t priority = 0;  // Lesser ones first; among equals clients share, then order of arrival.
  ClientId client = 0;
  /// Use the prefix cache, and leave what is computed to it. The tokens are the same either way.
  bool cache_prompt = true;
  bool wants_progress = false;  // Sink::OnPrefill.
  /// Sink::OnEmbedding; then nothing is generated: max_tokens is 0.
  Pooling pooling = Pooling::kNone;
  /// The server's own question whether the model runs: not in the statistics of requests.
  bool is_probe = false;
  std::optional<TimePoint> deadline;
  TimePoint arrival{};  // When the client's request came in; before tokenising.
  /// What the output must keep to; null: anything. Of this request alone.
  std::shared_ptr<TokenConstraint> constraint;
  std::shared_ptr<Sink> sink;
};

}  // namespace tessera::engine
