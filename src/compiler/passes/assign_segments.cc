// SPDX-License-Identifier: Apache-2.0
//
// Tensor parallelism cuts the inputs of the output projection between KV heads and those of the
// down projection anywhere between blocks. A segment is the part that the largest degree would
// give to one rank; every degree then adds the same segments in the same order.
#include <algorithm>

#include "compiler/passes/passes.h"
#include "tensor/dtype.h"

namespace tessera::compiler {
namespace {

constexpr int64_t kLargestDegree = 8;

/// The largest number of segments up to kLargestDegree that divides `units` and leaves whole
/// blocks of the format.
int64_t SegmentsOf(int64_t units, const bundle::Weight& weight) {
  const auto block = std::max<int64_t>(32, tensor::Info(weight.dtype).block_elements);
  for (int64_t segments = std::min(kLargestDegree, units); segments > 1; --segments) {
    const bool divides = units % segments == 0 && weight.k % segments == 0;
    if (divides && weight.k / segments % block == 0) return segments;
  }
  return 1;
}

}  // namespace

Status AssignSegments(Module* module) {
  for (size_t i = 0; i < module->weights.layers.size(); ++i) {
    const LayerWeights& layer = module->weights.layers[i];
    bundle::Weight& output = module->program.weights[static_cast<size_t>(layer.output)];
    output.segments = SegmentsOf(module->matched.layers[i].attention.kv_heads, output);
    bundle::Weight& down = module->program.weights[static_cast<size_t>(layer.down)];
    down.segments = SegmentsOf(down.k / 32, down);
  }
  return {};
}

}  // namespace tessera::compiler
