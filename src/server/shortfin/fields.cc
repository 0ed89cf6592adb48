// SPDX-License-Identifier: Apache-2.0
#include "server/shortfin/fields.h"

namespace tessera::server::shortfin {
namespace {

using openai::Field;
using openai::Kind;
using openai::Use;

// clang-format off
constexpr Field kFields[] = {
    // name, where, kind, low, high, use, meaning
    {"text", kGenerate, Kind::kStringOrArray, 0, 0, Use::kUsed, "A prompt or several; or give input_ids."},
    {"input_ids", kGenerate, Kind::kArray, 0, 0, Use::kUsed, "Token ids of a prompt, or an array of such arrays."},
    {"sampling_params", kGenerate, Kind::kAny, 0, 0, Use::kUsed, "{max_completion_tokens, temperature, top_k, top_p, min_p, seed}, or one for each prompt."},
    {"return_input_ids", kGenerate, Kind::kBool, 0, 0, Use::kUsed, "Answer with the generated ids alone."},
    {"stream", kGenerate, Kind::kBool, 0, 0, Use::kUsed, "Send text as server-sent events."},
    {"rid", kGenerate, Kind::kStringOrArray, 0, 0, Use::kUsed, "Name of the request, or one for each prompt."},
    {"strict", kGenerate, Kind::kBool, 0, 0, Use::kUsed, "What would be a warning is an error instead."},
    // The original took these, and they had no effect there either.
    {"image_data", kGenerate, Kind::kAny, 0, 0, Use::kIgnored, "Images."},
    {"modalities", kGenerate, Kind::kAny, 0, 0, Use::kIgnored, "Kinds of input."},
    {"return_logprob", kGenerate, Kind::kAny, 0, 0, Use::kIgnored, "Log-probabilities."},
    {"logprob_start_len", kGenerate, Kind::kAny, 0, 0, Use::kIgnored, "Log-probabilities."},
    {"top_logprobs_num", kGenerate, Kind::kAny, 0, 0, Use::kIgnored, "Log-probabilities."},
    {"return_text_in_logprobs", kGenerate, Kind::kAny, 0, 0, Use::kIgnored, "Log-probabilities."},
};
// clang-format on

}  // namespace

std::span<const Field> GenerateFields() {
  return kFields;
}

}  // namespace tessera::server::shortfin
