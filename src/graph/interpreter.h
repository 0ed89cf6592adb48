// SPDX-License-Identifier: Apache-2.0
//
// The reference interpreter: what a graph means, written to be read and believed, not to be fast.
// Weights are float32 as the formats define them, everything else is float64, nothing is fused,
// reordered or approximated. The oracle of passes, kernels and the CPU program. One object is one
// sequence; it keeps keys and values, so that Run() continues where the last one ended. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "graph/weight_source.h"

namespace tessera::graph {

/// Values by label. Run() fills in those whose labels the caller has put in (with any value),
/// row-major in the order of the value's type, T first.
using Trace = std::map<std::string, std::vector<double>>;

/// One layer's keys and values, position by position, as attention received them.
struct KvCache {
  std::vector<double> keys;    // [positions, kv_heads, head_dim], after rope
  std::vector<double> values;  // [positions, kv_heads, head_dim]
};

class Interpreter {
 public:
  /// `graph` must be verified; both must outlive this object.
  Interpreter(const Graph& graph, WeightSource& weights);

  /// Appends `tokens` to the sequence and returns the logits of each of them, [tokens, V].
  /// kInvalidArgument for no tokens, an id outside the vocabulary, or a trace label that the graph
  /// lacks; errors of the source. After an error Reset() before the next call.
  Result<std::vector<double>> Run(std::span<const int32_t> tokens, Trace* trace = nullptr);

  /// Forgets the sequence, keeps loaded weights.
  void Reset();
  /// Tokens so far.
  int64_t position() const { return position_; }

 private:
  Status LoadWeights();
  Status Step(uint32_t index, std::span<const int32_t> tokens);

  const Graph& graph_;
  WeightSource& weights_;
  std::vector<uint32_t> last_use_;              // [nodes]: index of the last user.
  std::vector<std::span<const float>> loaded_;  // [nodes]: of parameters.
  std::vector<std::vector<double>> values_;     // [nodes]: of the current step.
  std::vector<KvCache> kv_;                     // [layers]
  int64_t position_ = 0;
};

/// Index of the largest element, the first of equals. CHECKs that there is one.
int32_t ArgMax(std::span<const double> row);

}  // namespace tessera::graph
