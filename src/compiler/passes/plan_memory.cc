// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/passes.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"

namespace tessera::compiler {
namespace {

int64_t BufferBytes(bundle::BufferKind kind, int64_t rows, int64_t columns) {
  switch (kind) {
    case bundle::BufferKind::kQuantised:
      return kernels::QuantisedRowsBytes(rows, columns);
    case bundle::BufferKind::kBFloat16:
      return kernels::BFloat16RowsBytes(rows, columns);
    case bundle::BufferKind::kFloat:
      break;
  }
  return rows * columns * static_cast<int64_t>(sizeof(float));
}

}  // namespace

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
    plan.scratch_bytes += BufferBytes(buffer.kind, kRows, buffer.columns);
  return {};
}

}  // namespace tessera::compiler
