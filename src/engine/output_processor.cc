// SPDX-License-Identifier: Apache-2.0
#include "engine/output_processor.h"

#include <utility>

#include "base/utf8.h"

namespace tessera::engine {
OutputProcessor::OutputProcessor(std::unique_ptr<text::Detokenizer> detokenizer,
                                 OutputOptions options, std::span<const TokenId> prompt_tail)
    : detokenizer_(std::move(detokenizer)),
      options_(std::move(options)),
      matcher_(options_.stop_strings, options_.include_stop) {
  // The prompt's text is not part of the answer. Its ids were checked, so decoding cannot fail in a
  // way that matters here: the first token's error would be the same.
  for (const TokenId id : prompt_tail) (void)detokenizer_->Push(id);
}

Result<OutputDelta> OutputProcessor::OnToken(TokenOutput token) {
  if (stopped()) return OutputDelta{};
  ++token_count_;
  if (token.logprobs.has_value()) {
    has_logprobs_ = true;
    logprob_sum_ += static_cast<double>(token.logprobs->chosen);
  }
  if (token.is_end) {
    end_token_ = token.id;
    if (options_.place_end)
      held_.push_back({{token.id, decoded_chars_, std::move(token.logprobs)}, decoded_bytes_});
    return OutputDelta{};
  }
  held_.push_back({{token.id, decoded_chars_, std::move(token.logprobs)}, decoded_bytes_});
  TESSERA_ASSIGN_OR_RETURN(std::string text, detokenizer_->Push(token.id));
  decoded_bytes_ += text.size();
  decoded_chars_ += CodePoints(text);
  if (token_count_ <= options_.min_tokens) return Emit(std::move(text), false);
  return Emit(matcher_.Push(text), false);
}

Result<OutputDelta> OutputProcessor::OnEnd() {
  if (stopped()) return OutputDelta{};
  TESSERA_ASSIGN_OR_RETURN(const std::string text, detokenizer_->Flush());
  decoded_bytes_ += text.size();
  std::string rest = token_count_ > options_.min_tokens ? matcher_.Push(text) : text;
  rest += matcher_.Flush();
  return Emit(std::move(rest), true);
}

std::optional<double> OutputProcessor::mean_logprob() const {
  if (!has_logprobs_) return std::nullopt;
  return logprob_sum_ / static_cast<double>(token_count_);
}

OutputDelta OutputProcessor::Emit(std::string text, bool is_last) {
  emitted_bytes_ += text.size();
  OutputDelta delta{std::move(text), {}};
  // A token goes out with the first byte of its text. One without text of its own (half a
  // character, a hidden special token) goes with what follows, unless nothing is held back.
  const bool all = (is_last || emitted_bytes_ == decoded_bytes_) && !stopped();
  while (!held_.empty() && (all || held_.front().begin < emitted_bytes_)) {
    delta.tokens.push_back(std::move(held_.front().token));
    held_.pop_front();
  }
  if (stopped()) held_.clear();
  return delta;
}

}  // namespace tessera::engine
