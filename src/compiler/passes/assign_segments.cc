// SPDX-License-Identifier: Apache-2.0
//
// Tensor parallelism cuts the inputs of the output projection between KV heads and those of the
// down projection anywhere between blocks. Segments are such that every degree up to the largest
// that divides the heads gives whole ones to each rank; every degree then adds the same segments in
// the same order.
#include <algorithm>
#include <numeric>

#include "bundle/limits.h"
#include "bundle/shard.h"
#include "compiler/passes/passes.h"
#include "tensor/dtype.h"

namespace tessera::compiler {
namespace {

/// Whether segments of the weight's inputs, each of as many of `units`, are whole blocks.
bool Fits(int64_t segments, int64_t units, const bundle::Weight& weight) {
  const auto block = std::max<int64_t>(32, tensor::Info(weight.dtype).block_elements);
  return units % segments == 0 && weight.k % segments == 0 && weight.k / segments % block == 0;
}

/// The largest degree that fits.
int64_t LargestDegree(int64_t units, const bundle::Weight& weight) {
  for (int64_t degree = std::min(bundle::kMaxRanks, units); degree > 1; --degree)
    if (Fits(degree, units, weight)) return degree;
  return 1;
}

/// The least number of segments of which every degree that fits has whole ones: 10 for ten units,
/// which can be 1, 2 or 5 ranks. A degree that would make them too many is left out.
int64_t SegmentsOfHeads(int64_t heads, const bundle::Weight& weight) {
  int64_t segments = LargestDegree(heads, weight);
  for (int64_t degree = segments - 1; degree > 1; --degree) {
    const int64_t more = std::lcm(segments, degree);
    if (more <= static_cast<int64_t>(bundle::kMaxSegments) && Fits(more, heads, weight))
      segments = more;
  }
  return segments;
}

}  // namespace

bool HasManySegments(int64_t kv_heads) {
  int64_t least = 1;
  for (int64_t degree = 2; degree <= bundle::kMaxRanks; ++degree)
    if (kv_heads % degree == 0) least = std::lcm(least, degree);
  return least > bundle::kMaxRanks;
}

Status AssignSegments(Module* module) {
  for (size_t i = 0; i < module->weights.layers.size(); ++i) {
    const LayerWeights& layer = module->weights.layers[i];
    bundle::Weight& output = module->program.weights[static_cast<size_t>(layer.output)];
    output.segments = SegmentsOfHeads(module->matched.layers[i].attention.kv_heads, output);
    bundle::Weight& down = module->program.weights[static_cast<size_t>(layer.down)];
    down.segments = LargestDegree(down.k / 32, down);
  }
  return {};
}

}  // namespace tessera::compiler
