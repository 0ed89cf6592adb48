// SPDX-License-Identifier: Apache-2.0
//
// What a model needs: sizes from the headers of a repository, by a dry run of the compiler, or from
// a bundle. No weight is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/hub_options.h"

#include "base/status.h"
#include "bundle/program.h"
#include "compiler/compile.h"
#include "compiler/targets/cpu/archive.h"
#include "kernels/attention.h"
#include "model/open.h"
#include "tensor/dtype.h"

namespace tessera::cli {

/// Another way to store the matrices.
struct FormatChoice {
  std::string quantize;  // As of --quantize.
  uint64_t weight_bytes = 0;
  uint64_t replicated_bytes = 0;  // Of them, what every rank has whole.
};

struct PlanFacts {
  std::string model;     // "org/repo", or the path that was named.
  std::string revision;  // Of a repository of the hub.
  std::string family;    // "llama"; of a bundle its model's name.
  bool is_bundle = false;
  bundle::Program program;                     // What serving would run.
  tensor::DType format = tensor::DType::kF32;  // That most of the matrices' bytes have.
  int64_t parameters = 0;                      // Elements.
  int64_t context = 0;                         // Planned for.
  uint64_t source_bytes = 0;                   // On disk; 0 for a bundle.
  uint64_t original_bytes = 0;                 // Of the weights before any are rounded.
  uint64_t weight_bytes = 0;                   // Of the program, in memory.
  uint64_t bundle_bytes = 0;                   // Of disk: patterns (splats) take none.
  compiler::ArchiveNeeds needs;                // Of packing; of a repository only.
  bool is_exact = true;                        // No weight is rounded.
  uint64_t table_bytes = 0;  // Of weight_bytes, an embedding table that is nothing else: a few rows
                             // of it become memory.
  uint64_t tokenizer_json = 0;        // Of a repository: the size of its file, or
  uint64_t vocabulary_bytes = 0;      // of the strings in a GGUF's vocabulary.
  uint64_t tokenizer_bytes = 0;       // In memory; of a repository an estimate from its vocabulary.
  std::vector<FormatChoice> formats;  // Of a repository of float matrices: best first.
  std::vector<std::string> warnings;
  std::string largest_file;  // Of the source or bundle.
};

/// `model` as every verb takes it; of `compile` quantize and max_seq_len count. kInvalidArgument
/// when the context is longer than the model's.
Result<PlanFacts> ReadPlanFacts(const std::string& model, const HubOptions& hub,
                                const compiler::CompileOptions& compile);

/// Of an opened repository, but `formats`; "auto" is chosen for this machine.
Result<PlanFacts> FactsOfSource(const model::ModelSource& source, compiler::CompileOptions options);
/// Fills PlanFacts::formats.
void AddFormats(const model::ModelSource& source, const compiler::CompileOptions& wanted,
                PlanFacts* facts);

/// Memory of a server by owner, in bytes.
struct MemoryForecast {
  uint64_t weights = 0;  // The mapped archive.
  uint64_t table = 0;    // Of that, what stays on disk but for some rows: PlanFacts::table_bytes.
  uint64_t kv_per_token = 0;
  uint64_t scratch = 0;  // Activations of a step of 512 rows.
  uint64_t tokenizer = 0;
  uint64_t process = 0;  // Code, and what the heap holds for no request.

  uint64_t fixed() const { return weights + scratch + tokenizer + process; }
  uint64_t WithKv(uint64_t positions) const { return fixed() + kv_per_token * positions; }
  /// Positions of KV that fit beside the rest; 0 when not even that does.
  uint64_t PositionsIn(uint64_t bytes) const {
    return bytes <= fixed() || kv_per_token == 0 ? 0 : (bytes - fixed()) / kv_per_token;
  }
};
MemoryForecast ForecastMemory(const PlanFacts& facts, kernels::KvType kv_type);

/// What one rank of a tensor-parallel group holds.
struct RankBytes {
  int64_t ranks = 1;
  uint64_t weights = 0;
  uint64_t kv_per_token = 0;
};
/// Bytes of weights that one of `ranks` holds.
uint64_t WeightsOfRank(uint64_t weight_bytes, uint64_t replicated_bytes, int64_t ranks);
/// For every number of ranks up to 8 that divides the KV heads.
std::vector<RankBytes> BytesOfRanks(const PlanFacts& facts, kernels::KvType kv_type);

/// kResourceExhausted when the weights and KV of `positions`, of that type, are more than
/// `available` (0: not known): what is needed, what is there, what would fit.
Status CheckFits(const PlanFacts& facts, const MemoryForecast& memory, kernels::KvType kv_type,
                 uint64_t positions, uint64_t available);

/// Positions: less is no use to anybody.
inline constexpr uint64_t kShortestSequence = 256;

}  // namespace tessera::cli
