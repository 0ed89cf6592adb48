// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/engine_core.h"
#include "engine/limits.h"

namespace tessera::engine {
namespace {

Status CheckRange(double value, double low, double high, std::string_view name) {
  if (value >= low && value <= high) return {};  // False for NaN.
  return InvalidArgument(fmt::format("{} is {}, expected {} to {}", name, value, low, high));
}

Status CheckIds(std::span<const TokenId> ids, int64_t vocab_size, std::string_view name) {
  for (const TokenId id : ids)
    if (id < 0 || id >= vocab_size)
      return InvalidArgument(
          fmt::format("{} has token id {}, expected 0 to {}", name, id, vocab_size - 1));
  return {};
}

Status CheckDry(const DryParams& dry) {
  TESSERA_RETURN_IF_ERROR(CheckRange(dry.multiplier, 0, 100, "dry_multiplier"));
  TESSERA_RETURN_IF_ERROR(CheckRange(dry.base, 1, 100, "dry_base"));
  TESSERA_RETURN_IF_ERROR(CheckRange(static_cast<double>(dry.allowed_length), 1,
                                     static_cast<double>(kDryLastTokensMax), "dry_allowed_length"));
  TESSERA_RETURN_IF_ERROR(CheckRange(static_cast<double>(dry.last_tokens), -1,
                                     static_cast<double>(kDryLastTokensMax), "dry_penalty_last_n"));
  return {};
}

Status CheckSampling(const SamplingParams& params, int64_t vocab_size) {
  TESSERA_RETURN_IF_ERROR(CheckRange(params.temperature, 0, 100, "temperature"));
  TESSERA_RETURN_IF_ERROR(CheckRange(params.min_p, 0, 1, "min_p"));
  TESSERA_RETURN_IF_ERROR(CheckRange(params.typical_p, 0, 1, "typical_p"));
  TESSERA_RETURN_IF_ERROR(CheckRange(params.top_p, 0, 1, "top_p"));
  TESSERA_RETURN_IF_ERROR(CheckRange(params.repetition_penalty, 0.01, 100, "repetition_penalty"));
  TESSERA_RETURN_IF_ERROR(CheckRange(params.frequency_penalty, -100, 100, "frequency_penalty"));
  TESSERA_RETURN_IF_ERROR(CheckRange(params.presence_penalty, -100, 100, "presence_penalty"));
  TESSERA_RETURN_IF_ERROR(CheckDry(params.dry));
  TESSERA_RETURN_IF_ERROR(CheckRange(params.xtc.probability, 0, 1, "xtc_probability"));
  TESSERA_RETURN_IF_ERROR(CheckRange(params.xtc.threshold, 0, 1, "xtc_threshold"));
  if (static_cast<int64_t>(params.logit_bias.size()) > kLogitBiasMax)
    return InvalidArgument(fmt::format("logit_bias has {} entries, more than {}",
                                       params.logit_bias.size(), kLogitBiasMax));
  for (const auto& [id, bias] : params.logit_bias) {
    TESSERA_RETURN_IF_ERROR(CheckIds({&id, 1}, vocab_size, "logit_bias"));
    TESSERA_RETURN_IF_ERROR(CheckRange(bias, -1e6, 1e6, "logit_bias"));
  }
  return {};
}

Status CheckBeams(const Request& request) {
  if (!request.beams.has_value()) return {};
  const BeamParams& beams = *request.beams;
  TESSERA_RETURN_IF_ERROR(CheckRange(beams.width, 1, kBeamsMax, "num_beams"));
  TESSERA_RETURN_IF_ERROR(CheckRange(beams.length_penalty, -10, 10, "length_penalty"));
  if (std::ssize(beams.more_sinks) >= beams.width)
    return InvalidArgument(fmt::format("{} answers asked of {} beams, expected at most so many",
                                       beams.more_sinks.size() + 1, beams.width));
  if (request.constraint != nullptr)
    return InvalidArgument("beam search together with constrained output is not supported");
  if (!request.cache_prompt)
    return InvalidArgument(
        "beams share their pages through the prefix cache: leave cache_prompt out");
  if (request.stop.max_tokens < 1)
    return InvalidArgument("max_tokens is 0, expected at least 1 with num_beams");
  return {};
}

}  // namespace

int64_t MaxSequenceTokens(const runtime::ModelShape& shape) {
  return std::min(shape.max_seq_len, shape.page_count * shape.page_tokens);
}

Status CheckRequest(const Request& request, const runtime::ModelShape& shape) {
  if (request.sink == nullptr) return Internal("a request needs a sink");
  if (request.prompt.empty()) return InvalidArgument("the prompt has no tokens");
  TESSERA_RETURN_IF_ERROR(CheckIds(request.prompt, shape.vocab_size, "prompt"));
  TESSERA_RETURN_IF_ERROR(CheckIds(request.stop.eos_ids, shape.vocab_size, "eos ids"));
  TESSERA_RETURN_IF_ERROR(CheckIds(request.stop.stop_ids, shape.vocab_size, "stop_token_ids"));
  TESSERA_RETURN_IF_ERROR(CheckSampling(request.sampling, shape.vocab_size));
  for (const int top : {request.top_logprobs, request.prompt_logprobs})
    if (top > kTopLogprobsMax)
      return InvalidArgument(
          fmt::format("logprobs for {} tokens asked, at most {} are given", top, kTopLogprobsMax));
  TESSERA_RETURN_IF_ERROR(CheckBeams(request));
  if (request.beams.has_value() && request.constraint != nullptr)
    return InvalidArgument("beam search cannot keep an output to a form; leave one of them out");
  const StopParams& stop = request.stop;
  // Without an answer there must be something else that is wanted.
  const bool is_pooled = request.pooling != Pooling::kNone;
  if (is_pooled && shape.hidden_size == 0)
    return Unimplemented("this model gives no hidden states");
  if (is_pooled && (stop.max_tokens != 0 || request.prompt_logprobs >= 0))
    return InvalidArgument("with pooling nothing else can be asked for");
  const int64_t least = request.prompt_logprobs >= 0 || is_pooled ? 0 : 1;
  if (stop.max_tokens < least)
    return InvalidArgument(
        fmt::format("max_tokens is {}, expected at least {}", stop.max_tokens, least));
  if (stop.min_tokens < 0 || stop.min_tokens > stop.max_tokens)
    return InvalidArgument(fmt::format("min_tokens is {}, expected 0 to max_tokens ({})",
                                       stop.min_tokens, stop.max_tokens));
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const int64_t limit = MaxSequenceTokens(shape);
  if (prompt_tokens > limit || stop.max_tokens > limit - prompt_tokens)
    return InvalidArgument(fmt::format(
        "the prompt has {} tokens and max_tokens is {}: {} tokens needed, {} available ({}); "
        "shorten the prompt or lower max_tokens{}",
        prompt_tokens, stop.max_tokens, prompt_tokens + stop.max_tokens, limit,
        limit == shape.max_seq_len ? "the model's context"
                                   : "KV memory, less than the model's context",
        limit == shape.max_seq_len ? "" : ", or start the server with a greater --kv-memory"));
  return {};
}

}  // namespace tessera::engine
