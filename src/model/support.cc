// SPDX-License-Identifier: Apache-2.0
#include "model/support.h"

namespace tessera::model {
namespace {

constexpr SupportedModel kModels[] = {
    {"llama", "SmolLM2-135M-Instruct", "tp1", Weights::kReal, true,
     "tests/cpu_program/logits_test.cc:AgreesWithTheReferenceWithinTheTolerancesOf8BitActivations"},
    {"llama", "SmolLM2-135M-Instruct", "tp3", Weights::kReal, true,
     "tests/e2e/test_tensor_parallel.py:test_ranks_of_one_process_answer_as_one"},
    {"llama", "any with 8 KV heads", "tp1, tp2, tp4, tp8", Weights::kSmall, true,
     "tests/cpu_program/sharding_test.cc:AnyNumberOfRanksGivesTheSameBytes"},
    {"llama", "Llama 3.1 8B, 8B-Instruct", "tp1, tp2, tp4, tp8", Weights::kRandom, false,
     "bench/tensor_parallel.py"},
    {"llama", "Llama 3.1 8B, 8B-Instruct", "tp1, tp2, tp4, tp8", Weights::kHeaders, true,
     "tests/e2e/test_plan.py:test_large_models_are_planned_from_headers"},
    {"llama", "Llama 3.1 70B, 70B-Instruct; 3.3 70B-Instruct", "tp1, tp2, tp4, tp8",
     Weights::kHeaders, true, "tests/e2e/test_plan.py:test_large_models_are_planned_from_headers"},
    {"llama", "Llama 3.1 405B, 405B-Instruct", "tp8", Weights::kSplats, true,
     "tests/cpu_program/splat_test.cc:A405BShapedModelIsABundleOfAFewMegabytesForEightRanks"},
    {"llama", "Llama 3.1 405B, 405B-Instruct", "tp1, tp2, tp4, tp8", Weights::kHeaders, true,
     "tests/e2e/test_plan.py:test_large_models_are_planned_from_headers"},
    {"llama", "Llama 1, 2, 3, 3.1, 3.2 (text), 3.3; SmolLM; TinyLlama", "tp1", Weights::kSmall,
     true, "tests/cpu_program/logits_test.cc:AllFormsGiveTheSameLogits"},
    {"mistral", "Mistral 7B, Mistral-Nemo", "tp1", Weights::kSmall, true,
     "tests/cpu_program/variations_test.cc:WindowInSomeLayersAndSoftcap"},
    {"qwen2", "Qwen2, Qwen2.5", "tp1", Weights::kSmall, true,
     "tests/cpu_program/variations_test.cc:InterleavedRopeOfSomeOfTheHeadWithBiasAndHeadNorms"},
    {"qwen3", "Qwen3 (dense)", "tp1", Weights::kSmall, true,
     "tests/cpu_program/variations_test.cc:InterleavedRopeOfSomeOfTheHeadWithBiasAndHeadNorms"},
};

}  // namespace

std::string_view WeightsText(Weights weights) {
  switch (weights) {
    case Weights::kReal:
      return "real weights";
    case Weights::kRandom:
      return "random weights of its shape";
    case Weights::kSmall:
      return "random weights of a small shape";
    case Weights::kSplats:
      return "splats of its shape: compiled and sharded";
    case Weights::kHeaders:
      break;
  }
  return "headers only: planned";
}

std::span<const SupportedModel> SupportedModels() {
  return kModels;
}

}  // namespace tessera::model
