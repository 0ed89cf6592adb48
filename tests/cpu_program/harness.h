// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the CPU program share: compile a model into a temporary cache, load it, feed
// sequences in any chunking, and read the reference fixtures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "compiler/compile.h"
#include "model/open.h"
#include "runtime/load.h"
#include "runtime/session.h"
#include "support/fixtures.h"

namespace tessera::testing {

std::filesystem::path TinyLlama(std::string_view form);  // "hf", "hf_sharded", "tiny-f16.gguf"
std::filesystem::path SmolLm2();

/// Compiles with the default options into `cache`; fails the test on an error.
compiler::CompileReport MustCompile(const std::filesystem::path& model,
                                    const std::filesystem::path& cache,
                                    const compiler::CompileOptions& options = {});
/// Compiles each model once a process.
std::filesystem::path BundleOf(const std::filesystem::path& model);

std::unique_ptr<runtime::Session> MustLoad(const std::filesystem::path& bundle,
                                           const runtime::LoadOptions& options = {});

using Logits = std::vector<float>;  // [rows, vocab_size]

/// One sequence of a session: owns a run of pages.
class Sequence {
 public:
  Sequence(runtime::Session* session, runtime::PageId first_page, int64_t pages);
  /// In any order of the pool's pages.
  Sequence(runtime::Session* session, std::vector<runtime::PageId> pages);

  int64_t position() const { return position_; }
  runtime::Chunk Next(std::span<const int32_t> tokens,
                      runtime::Chunk::Logits logits = runtime::Chunk::Logits::kAll);
  /// Runs the tokens in chunks of `chunk`; all logits.
  Logits Feed(std::span<const int32_t> tokens, int64_t chunk);
  void Reset() { position_ = 0; }

 private:
  runtime::Session* session_;
  std::vector<runtime::PageId> pages_;
  int64_t position_ = 0;
};

/// All logits of a fresh sequence on the first pages.
Logits RunAll(runtime::Session* session, std::span<const int32_t> tokens, int64_t chunk = 64);

/// One line of a fixture's logits.jsonl.
struct Reference {
  struct Row {
    std::vector<std::pair<int32_t, double>> top;  // id, logit; descending
    double logsumexp = 0;
  };
  struct Greedy {
    int32_t id = 0;
    double margin = 0;
  };
  std::string id;
  std::vector<int32_t> ids;
  Row last;
  std::vector<Row> positions;
  std::vector<int32_t> argmax;
  double mean_nll = 0;
  std::vector<Greedy> greedy;
};
std::vector<Reference> ReadReferences(const std::filesystem::path& file);

int32_t ArgMax(std::span<const float> row);
double MeanNll(const Logits& logits, std::span<const int32_t> ids, int64_t vocabulary);

}  // namespace tessera::testing
