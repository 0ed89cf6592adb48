// SPDX-License-Identifier: Apache-2.0
//
// What constrained output costs with a real vocabulary: compiling a schema, starting a sequence,
// and the mask of each step of an answer (the slowest step is reported besides the mean).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/grammar.h"
#include "text/test_vocabularies.h"

namespace tessera::text {
namespace {

constexpr const char* kPerson =
    R"({"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":12},
        "age":{"type":"integer","minimum":0,"maximum":120},"tags":{"type":"array","items":
        {"type":"string"}},"home":{"type":"object","properties":{"city":{"type":"string"},
        "zip":{"type":"string","pattern":"^[0-9]{5}$"}},"required":["city","zip"],
        "additionalProperties":false}},"required":["name","age","tags","home"],
        "additionalProperties":false})";
constexpr const char* kAnswer =
    R"({"name": "Ada", "age": 36, "tags": ["first", "of many programmers"], )"
    R"("home": {"city": "London, England", "zip": "12345"}})";

const Tokenizer& Model() {
  static const auto tokenizer = GgufTokenizer("SmolLM2-135M-Instruct.Q4_1.gguf");
  return *tokenizer;
}

std::shared_ptr<const ConstraintVocabulary> Vocabulary() {
  static const auto vocabulary = [] {
    const TokenId end[] = {Model().FindToken("<|im_end|>")};
    return ConstraintVocabulary::Make(Model(), end).value();
  }();
  return vocabulary;
}

void MakeVocabulary(benchmark::State& state) {
  const TokenId end[] = {Model().FindToken("<|im_end|>")};
  for (auto _ : state) benchmark::DoNotOptimize(ConstraintVocabulary::Make(Model(), end));
}
BENCHMARK(MakeVocabulary)->Unit(benchmark::kMillisecond);

void Compile(benchmark::State& state) {
  const auto vocabulary = Vocabulary();
  for (auto _ : state)
    benchmark::DoNotOptimize(Grammar::Compile(vocabulary, GrammarKind::kJsonSchema, kPerson));
}
BENCHMARK(Compile)->Unit(benchmark::kMillisecond);

void Start(benchmark::State& state) {
  const auto grammar = Grammar::Compile(Vocabulary(), GrammarKind::kJsonSchema, kPerson).value();
  for (auto _ : state) benchmark::DoNotOptimize(grammar->Start());
}
BENCHMARK(Start)->Unit(benchmark::kMicrosecond);

void Masks(benchmark::State& state, const char* schema) {
  const auto grammar = Grammar::Compile(Vocabulary(), GrammarKind::kJsonSchema, schema).value();
  const auto ids = Model().Encode(kAnswer, {.add_special = false}).value();
  std::vector<uint32_t> mask(Vocabulary()->mask_words());
  double slowest_us = 0;
  int64_t steps = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const auto constraint = grammar->Start().value();
    state.ResumeTiming();
    for (const TokenId id : ids) {
      const auto begin = std::chrono::steady_clock::now();
      TESSERA_CHECK(constraint->ComputeMask(mask).ok());
      TESSERA_CHECK(constraint->Commit(id).ok());
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      slowest_us = std::max(slowest_us, took.count());
      ++steps;
    }
  }
  state.SetItemsProcessed(steps);
  state.counters["slowest_us"] = slowest_us;
}
BENCHMARK_CAPTURE(Masks, person, kPerson)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Masks, any_object, R"({"type":"object"})")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tessera::text
