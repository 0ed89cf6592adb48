// SPDX-License-Identifier: Apache-2.0
//
// Shards: how a program is cut for tensor parallelism, as pure functions of the program. The bundle
// stores the whole program; compiler and runtime derive each rank's from it, so they cannot differ.
//
//   attention q/k/v, gate, up     by output rows: the rank's heads, its columns of the ffn
//   attention output, ffn down    by inputs, at the boundaries of the weight's segments: a rank
//   sums
//                                 each of its segments apart, and all are added in their order
//   output matrix                 by vocabulary entries, unless it is the embedding table, too
//   all else                      every rank has it
//
// A cut falls between segments only (kernels/matmul.h), so any number of ranks adds the same
// numbers in the same order as one. Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bundle/program.h"

namespace tessera::bundle {

inline constexpr int64_t kMaxRanks = 8;
/// A weight that is cut is called NAME, this, RANK.
inline constexpr std::string_view kShardSuffix = ".shard.";

/// [begin, end)
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Interval&) const = default;
};

/// What one rank computes.
struct RankShare {
  Interval kv_heads;    // With their groups of query heads.
  Interval ffn;         // Columns of the gated product.
  Interval vocabulary;  // In whole blocks of 32 logits, but for the end; may be empty.
  bool operator==(const RankShare&) const = default;
};

/// The shares of `ranks` ranks. `program` is verified. kInvalidArgument in one sentence, with the
/// numbers of ranks that work, when heads do not divide evenly and `allow_uneven` does not let them
/// be dealt unevenly, or when there are fewer parts than ranks. Columns of the ffn and the
/// vocabulary are dealt as evenly as their parts allow.
Result<std::vector<RankShare>> PlanShares(const Program& program, int64_t ranks, bool allow_uneven);

/// The numbers of ranks that PlanShares takes: "tp1, tp3".
std::string PossibleRanks(const Program& program, bool allow_uneven);

/// Which part of a weight of the whole program a rank has.
struct WeightSlice {
  enum class Kind : uint8_t {
    kWhole,
    kRows,    // Rows (elements of a vector) of `rows`, one interval after the other.
    kInputs,  // Inputs `inputs`, in layout kSegments.
  };
  Kind kind = Kind::kWhole;
  std::vector<Interval> rows;
  Interval inputs;
  std::vector<int64_t> segments;  // kInputs: how many each of the ranks sums, in their order.
  bool operator==(const WeightSlice&) const = default;
};

/// A rank's program, and where it stands in the whole one.
struct RankProgram {
  /// dims.heads and dims.kv_heads are the rank's, the vocabulary is whole. Weights that are cut are
  /// called "NAME.shard.RANK", the others keep their names. The same steps for every rank.
  Program program;
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t first_kv_head = 0;
  int64_t all_kv_heads = 0;
  Interval vocabulary;   // Logits that the head computes,
  int64_t head_row = 0;  // from this row of its weight on.
  // Where the logits of each rank begin, and their blocks of 32; one more for the end.
  std::vector<int64_t> logit_begins, block_begins;
  std::vector<WeightSlice> slices;  // By weight.
};

/// Requires shares that PlanShares made of this program. kUnimplemented for a program that no
/// compiler of ours writes: weights shared by steps that need different parts of them.
Result<RankProgram> MakeRankProgram(const Program& whole, const std::vector<RankShare>& shares,
                                    int64_t rank);

/// The rank program of an unsharded one.
RankProgram WholeProgram(Program program);

/// The file of a rank beside the archive `file`: "model.irpa" -> "model.rank3.irpa".
std::string RankFile(std::string_view file, int64_t rank);

}  // namespace tessera::bundle
