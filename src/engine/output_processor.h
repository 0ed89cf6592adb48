// SPDX-License-Identifier: Apache-2.0
//
// OutputProcessor: one request's tokens -> text, on the consumer's side so that the engine thread
// never detokenises. It decodes incrementally, holds back what may become a stop string, tells when
// one was found (the consumer then calls Engine::Stop), and pairs each token with its place in the
// text for logprobs. The concatenation of all deltas is the answer, however it is cut.
// One owner at a time; no locks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/request.h"
#include "engine/stop_matcher.h"
#include "text/tokenizer.h"

namespace tessera::engine {

struct OutputOptions {
  std::vector<std::string> stop_strings;
  bool include_stop = false;
  /// Stop strings are looked for only in text after so many tokens.
  int64_t min_tokens = 0;
  /// Give out the ending token too, with its logprobs, without text.
  bool place_end = false;
};

/// A token whose text has been given out.
struct PlacedToken {
  TokenId id = 0;
  int64_t text_offset = 0;  // Where its text begins, in code points of the answer.
  std::optional<Logprobs> logprobs;
};

struct OutputDelta {
  std::string text;                 // Whole characters.
  std::vector<PlacedToken> tokens;  // Ending tokens (EOS) only with `place_end`.
};

class OutputProcessor {
 public:
  /// `detokenizer` is fresh; `prompt_tail` are the prompt's last tokens, which decide how the first
  /// generated one is spelled (a leading space). A dozen is enough.
  OutputProcessor(std::unique_ptr<text::Detokenizer> detokenizer, OutputOptions options,
                  std::span<const TokenId> prompt_tail);

  Result<OutputDelta> OnToken(TokenOutput token);
  /// The rest: text and tokens held back.
  Result<OutputDelta> OnEnd();

  /// A stop string was found: the answer is complete, later tokens are ignored.
  bool stopped() const { return matcher_.matched(); }
  /// That stop string; empty while none was found.
  const std::string& stop_string() const { return matcher_.match(); }
  /// Tokens of the answer so far, ending token included.
  int64_t token_count() const { return token_count_; }
  /// Mean over these tokens; nothing when the request asked for no logprobs.
  std::optional<double> mean_logprob() const;
  /// The stop or EOS id that ended the answer, or -1.
  TokenId end_token() const { return end_token_; }

 private:
  struct Held {
    PlacedToken token;
    uint64_t begin = 0;  // In bytes of the whole decoded text.
  };
  OutputDelta Emit(std::string text, bool is_last);

  std::unique_ptr<text::Detokenizer> detokenizer_;
  const OutputOptions options_;
  StopMatcher matcher_;
  std::deque<Held> held_;
  uint64_t decoded_bytes_ = 0;
  int64_t decoded_chars_ = 0;
  uint64_t emitted_bytes_ = 0;
  int64_t token_count_ = 0;
  TokenId end_token_ = -1;
  double logprob_sum_ = 0;
  bool has_logprobs_ = false;
};

}  // namespace tessera::engine
