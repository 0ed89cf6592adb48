// SPDX-License-Identifier: Apache-2.0
//
// One row of logits -> one token, for the parameters that people use. Logits are normal numbers
// with a few that stand out, as a language model gives them. Time a row, vocabulary of 49,152 and
// 128,256.
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/sampler.h"
#include "kernels/registry.h"

namespace tessera::kernels {
namespace {

std::vector<float> Row(int64_t vocabulary) {
  std::vector<float> row;
  for (int64_t i = 0; i < vocabulary; ++i) {
    // Box and Muller; every 1,000th token is a likely one.
    const double u = 1 - UniformAt(1, 0, static_cast<uint64_t>(i));
    const double v = UniformAt(1, 1, static_cast<uint64_t>(i));
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
    row.push_back(static_cast<float>(3 * normal + (i % 1000 == 0 ? 8 : 0)));
  }
  return row;
}

void RunSampler(benchmark::State& state, const engine::SamplingParams& params) {
  const std::vector<float> row = Row(state.range(0));
  const engine::TokenHistory history(params, {});
  engine::Sampler sampler;
  uint64_t position = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(sampler.Sample(row, params, history, {}, position++));
}

void Register(const std::string& name, double temperature, int64_t top_k, double top_p,
              double min_p = 0, double repetition_penalty = 1) {
  engine::SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  params.repetition_penalty = repetition_penalty;
  benchmark::RegisterBenchmark(("sampler/" + name).c_str(),
                               [params](benchmark::State& state) { RunSampler(state, params); })
      ->ArgName("vocabulary")
      ->Arg(49152)
      ->Arg(128256);
}

}  // namespace

void RegisterSampler() {
  Register("greedy", 0, 0, 1);
  Register("plain", 1, 0, 1);
  Register("min_p", 1, 0, 1, 0.05);
  Register("top_k_top_p", 0.6, 40, 0.9);
  Register("top_p", 0.6, 0, 0.9);
  Register("penalty", 0.7, 0, 0.9, 0, 1.1);
}

}  // namespace tessera::kernels
