// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_compile.h"

#include "base/topology.h"
#include "bundle/buffer_bytes.h"
#include "certify/certify.h"
#include "kernels/attention.h"
#include "runtime/segments.h"

namespace tessera::cli {
namespace {

// Measured (docs/performance.md, "What plan predicts").
constexpr uint64_t kCodeBytes = 30'000'000;   // Resident code of the program and its libraries.
constexpr uint64_t kHeapBytes = 8'000'000;    // Before anything of the model is read.
constexpr uint64_t kHashingWindow = 2 << 20;  // Of the sources, mapped while they are hashed.
/// Making a tokenizer takes so many times its tokenizer.json, or the strings of a GGUF's
/// vocabulary.
constexpr uint64_t kPerJsonByte = 31;
constexpr uint64_t kPerVocabularyByte = 9;

uint64_t MakingTokenizerBytes(const PlanFacts& facts) {
  return kPerJsonByte * facts.tokenizer_json + kPerVocabularyByte * facts.vocabulary_bytes;
}

/// One of the two sessions that a certificate compares.
uint64_t SessionBytes(const PlanFacts& facts, int64_t tokens) {
  const bundle::Dims& d = facts.program.dims;
  const auto logit_row = static_cast<uint64_t>(d.vocab_size) * sizeof(float);
  const int64_t rows = std::min<int64_t>(
      tokens, std::max<int64_t>(1, certify::kMaxLogitBytes / static_cast<int64_t>(logit_row)));
  const kernels::KvLayout page{d.layers, d.kv_heads, d.head_dim, d.page_tokens,
                               kernels::KvType::kF16};
  uint64_t bytes = static_cast<uint64_t>(rows) * logit_row;
  bytes += static_cast<uint64_t>(page.PageBytes() / d.page_tokens * tokens);
  for (const bundle::Buffer& buffer : facts.program.buffers)
    bytes += bundle::BufferBytes(buffer.kind, rows, buffer.columns);
  return bytes;
}

StageBytes Certificate(const PlanFacts& facts) {
  const int64_t tokens =
      certify::TokensToScore(certify::kMaxTokens, facts.parameters, facts.program.dims.max_seq_len);
  const bool compares =
      certify::WhyNotOriginal(facts.original_bytes, ReadTopology().memory_available,
                              /*disk_available=*/~uint64_t{0})
          .empty();
  // Weights are mapped a segment at a time (LoadOptions::release_weights), of one program after
  // the other.
  const runtime::LargestSegment segment = runtime::LargestSegmentOf(facts.program);
  const double original =
      static_cast<double>(facts.original_bytes) / static_cast<double>(facts.parameters);
  const auto of_original = static_cast<uint64_t>(static_cast<double>(segment.elements) * original);
  const uint64_t sessions = compares ? 2 : 1;
  return {sessions * SessionBytes(facts, tokens),
          std::max(segment.bytes, compares ? of_original : 0)};
}

}  // namespace

CompileForecast ForecastCompile(const PlanFacts& facts, bool certify) {
  CompileForecast forecast;
  if (facts.is_bundle) return forecast;
  const uint64_t heap = kHeapBytes + MakingTokenizerBytes(facts);
  forecast.hashing = {kHeapBytes, kCodeBytes + kHashingWindow};
  forecast.tokenizer = {heap, kCodeBytes};
  forecast.packing = {std::max(heap, kHeapBytes + facts.needs.buffers),
                      kCodeBytes + facts.needs.mapped};
  if (certify && !facts.is_exact) {
    forecast.certificate = Certificate(facts);
    forecast.certificate.own += heap;
    forecast.certificate.mapped += kCodeBytes;
  }
  return forecast;
}

}  // namespace tessera::cli
