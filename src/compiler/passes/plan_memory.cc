// SPDX-License-Identifier: Apache-2.0
#include "bundle/buffer_bytes.h"
#include "compiler/passes/passes.h"
#include "kernels/attention.h"

namespace tessera::compiler {

Status PlanMemory(Module* module) {
  constexpr int64_t kRows = 512;  // The runtime's default for a step.
  const bundle::Program& program = module->program;
  bundle::MemoryPlan& plan = module->plan;
  for (const bundle::Weight& weight : program.weights) plan.parameter_bytes += weight.bytes;
  const bundle::Dims& d = program.dims;
  plan.kv_bytes_per_token =
      kernels::KvLayout{d.layers, d.kv_heads, d.head_dim, d.page_tokens}.PageBytes() /
      d.page_tokens;
  for (const bundle::Buffer& buffer : program.buffers)
    plan.scratch_bytes +=
        static_cast<int64_t>(bundle::BufferBytes(buffer.kind, kRows, buffer.columns));
  return {};
}

}  // namespace tessera::compiler
