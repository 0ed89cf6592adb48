// SPDX-License-Identifier: Apache-2.0
//
// THE table of kernels: (operation, weight format, rows class, ISA) -> function, best first, the
// scalar reference last. The compiler asks it which kernel a step will use and records the name in
// the program; the runtime resolves names for the machine it runs on. All kernels of one
// (operation, format) give the same bits, so a substitution changes speed only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/topology.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/logits.h"
#include "kernels/matmul.h"
#include "tensor/dtype.h"

namespace tessera::kernels {

enum class Op : uint8_t {
  kMatmul,
  kQuantise,
  kRound,
  kRmsNorm,
  kRmsNormQuantise,
  kRmsNormRound,
  kAdd,
  kMul,
  kSiluGate,
  kGeluGate,
  kRope,
  kFloatToHalf,
  kKvWrite,
  kAttention,
  kBlockMax,
  kSoftmaxMass,
};

/// Which numbers of rows an entry is meant for. Any entry is correct for any number of rows.
enum class RowsClass : uint8_t { kAny, kOne, kMany };

enum class KernelIsa : uint8_t {
  kRef,
  kAvx2,
  kAvxVnni,
  kAvx512,
  kAvx512Vnni,
  kAvx512Bf16,
  kAmxInt8,
  kNeon
};

using KernelFn = std::variant<MatmulFn, QuantiseFn, RoundFn, RmsNormFn, BinaryFn, GatedFn, RopeFn,
                              FloatToHalfFn, KvWriteFn, AttentionFn, BlockMaxFn, SoftmaxMassFn>;

struct Entry {
  Op op;
  std::optional<tensor::DType> weights;  // matmul only
  RowsClass rows;
  KernelIsa isa;
  std::string_view name;  // "matmul.q4_1.p8.gemv.avx2": unique and stable
  KernelFn fn;
};

std::string_view Name(Op op);
std::string_view Name(KernelIsa isa);

/// Every entry, best first within its (op, weights).
std::span<const Entry> Catalog();

/// Whether the machine can run the entry's ISA. For AVX512_BF16 also whether this CPU's dot product
/// gives the bits of matmul.h: it is tried once, on a few vectors. A CPU without the instruction
/// cannot know, and may still plan for a machine with it.
bool Runs(KernelIsa isa, const Isa& machine);

/// The best entry; null only when no kernel exists at all (a weight format that we do not pack).
const Entry* Find(Op op, std::optional<tensor::DType> weights, RowsClass rows, const Isa& machine);
inline const Entry* FindMatmul(tensor::DType weights, int64_t rows, const Isa& machine) {
  return Find(Op::kMatmul, weights, rows == 1 ? RowsClass::kOne : RowsClass::kMany, machine);
}

/// By recorded name, when the machine can run it; else null.
const Entry* FindByName(std::string_view name, const Isa& machine);

/// All operations without weights, resolved: what an executor keeps.
struct RowKernels {
  QuantiseFn quantise;
  RoundFn round;
  RmsNormFn rms_norm;
  RmsNormFn rms_norm_quantise;
  RmsNormFn rms_norm_round;
  BinaryFn add;
  BinaryFn mul;
  GatedFn silu_gate;
  GatedFn gelu_gate;
  RopeFn rope;
  FloatToHalfFn float_to_half;
  KvWriteFn kv_write;
  AttentionFn attention;
  BlockMaxFn block_max;
  SoftmaxMassFn softmax_mass;
};
RowKernels SelectRowKernels(const Isa& machine);

/// Cells of the matrix (op, weights, ISA) that have no kernel yet, by name:
/// "matmul.q4_1.p8.avx512_vnni". What is left to write.
std::vector<std::string> EmptyCells();

}  // namespace tessera::kernels
