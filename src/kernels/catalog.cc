// SPDX-License-Identifier: Apache-2.0
#include "kernels/catalog.h"

#include <array>

#include "kernels/ref/ref.h"
#include "kernels/x86/avx2.h"
#include "kernels/x86/avx512.h"
#include "kernels/x86/avx_vnni.h"

namespace tessera::kernels {
namespace {

using tensor::DType;
constexpr auto kNone = std::nullopt;
constexpr auto kAvx2 = KernelIsa::kAvx2;
constexpr auto kAvxVnni = KernelIsa::kAvxVnni;
constexpr auto kAvx512 = KernelIsa::kAvx512;
constexpr auto kVnni = KernelIsa::kAvx512Vnni;
constexpr auto kBf16 = KernelIsa::kAvx512Bf16;
constexpr auto kRef = KernelIsa::kRef;
constexpr auto kAny = RowsClass::kAny;
constexpr auto kOne = RowsClass::kOne;
constexpr auto kMany = RowsClass::kMany;

// clang-format off
const Entry kCatalog[] = {
  // op, weights, rows, isa, name, function
  {Op::kMatmul, DType::kQ4_0, kOne, kVnni, "matmul.q4_0.p8.gemv.avx512_vnni", &avx512::MatmulOneRow<DType::kQ4_0>},
  {Op::kMatmul, DType::kQ4_0, kMany, kVnni, "matmul.q4_0.p8.gemm.avx512_vnni", &avx512::MatmulRows<DType::kQ4_0>},
  {Op::kMatmul, DType::kQ4_1, kOne, kVnni, "matmul.q4_1.p8.gemv.avx512_vnni", &avx512::MatmulOneRow<DType::kQ4_1>},
  {Op::kMatmul, DType::kQ4_1, kMany, kVnni, "matmul.q4_1.p8.gemm.avx512_vnni", &avx512::MatmulRows<DType::kQ4_1>},
  {Op::kMatmul, DType::kQ8_0, kOne, kVnni, "matmul.q8_0.p8.gemv.avx512_vnni", &avx512::MatmulOneRow<DType::kQ8_0>},
  {Op::kMatmul, DType::kQ8_0, kMany, kVnni, "matmul.q8_0.p8.gemm.avx512_vnni", &avx512::MatmulRows<DType::kQ8_0>},
  {Op::kMatmul, DType::kQ5_0, kOne, kVnni, "matmul.q5_0.p8.gemv.avx512_vnni", &avx512::MatmulOneRow<DType::kQ5_0>},
  {Op::kMatmul, DType::kQ5_0, kMany, kVnni, "matmul.q5_0.p8.gemm.avx512_vnni", &avx512::MatmulRows<DType::kQ5_0>},
  {Op::kMatmul, DType::kQ5_1, kOne, kVnni, "matmul.q5_1.p8.gemv.avx512_vnni", &avx512::MatmulOneRow<DType::kQ5_1>},
  {Op::kMatmul, DType::kQ5_1, kMany, kVnni, "matmul.q5_1.p8.gemm.avx512_vnni", &avx512::MatmulRows<DType::kQ5_1>},
  {Op::kMatmul, DType::kQ4_K, kOne, kVnni, "matmul.q4_k.p8.gemv.avx512_vnni", &avx512::MatmulOneRow<DType::kQ4_K>},
  {Op::kMatmul, DType::kQ4_K, kMany, kVnni, "matmul.q4_k.p8.gemm.avx512_vnni", &avx512::MatmulRows<DType::kQ4_K>},
  {Op::kMatmul, DType::kQ5_K, kOne, kVnni, "matmul.q5_k.p8.gemv.avx512_vnni", &avx512::MatmulOneRow<DType::kQ5_K>},
  {Op::kMatmul, DType::kQ5_K, kMany, kVnni, "matmul.q5_k.p8.gemm.avx512_vnni", &avx512::MatmulRows<DType::kQ5_K>},
  {Op::kMatmul, DType::kQ6_K, kOne, kVnni, "matmul.q6_k.p8.gemv.avx512_vnni", &avx512::MatmulOneRow<DType::kQ6_K>},
  {Op::kMatmul, DType::kQ6_K, kMany, kVnni, "matmul.q6_k.p8.gemm.avx512_vnni", &avx512::MatmulRows<DType::kQ6_K>},

  {Op::kMatmul, DType::kQ4_0, kOne, kAvxVnni, "matmul.q4_0.p8.gemv.avx_vnni", &avx_vnni::MatmulOneRow<DType::kQ4_0>},
  {Op::kMatmul, DType::kQ4_0, kMany, kAvxVnni, "matmul.q4_0.p8.gemm.avx_vnni", &avx_vnni::MatmulRows<DType::kQ4_0>},
  {Op::kMatmul, DType::kQ4_1, kOne, kAvxVnni, "matmul.q4_1.p8.gemv.avx_vnni", &avx_vnni::MatmulOneRow<DType::kQ4_1>},
  {Op::kMatmul, DType::kQ4_1, kMany, kAvxVnni, "matmul.q4_1.p8.gemm.avx_vnni", &avx_vnni::MatmulRows<DType::kQ4_1>},
  {Op::kMatmul, DType::kQ8_0, kOne, kAvxVnni, "matmul.q8_0.p8.gemv.avx_vnni", &avx_vnni::MatmulOneRow<DType::kQ8_0>},
  {Op::kMatmul, DType::kQ8_0, kMany, kAvxVnni, "matmul.q8_0.p8.gemm.avx_vnni", &avx_vnni::MatmulRows<DType::kQ8_0>},
  {Op::kMatmul, DType::kQ5_0, kOne, kAvxVnni, "matmul.q5_0.p8.gemv.avx_vnni", &avx_vnni::MatmulOneRow<DType::kQ5_0>},
  {Op::kMatmul, DType::kQ5_0, kMany, kAvxVnni, "matmul.q5_0.p8.gemm.avx_vnni", &avx_vnni::MatmulRows<DType::kQ5_0>},
  {Op::kMatmul, DType::kQ5_1, kOne, kAvxVnni, "matmul.q5_1.p8.gemv.avx_vnni", &avx_vnni::MatmulOneRow<DType::kQ5_1>},
  {Op::kMatmul, DType::kQ5_1, kMany, kAvxVnni, "matmul.q5_1.p8.gemm.avx_vnni", &avx_vnni::MatmulRows<DType::kQ5_1>},
  {Op::kMatmul, DType::kQ4_K, kOne, kAvxVnni, "matmul.q4_k.p8.gemv.avx_vnni", &avx_vnni::MatmulOneRow<DType::kQ4_K>},
  {Op::kMatmul, DType::kQ4_K, kMany, kAvxVnni, "matmul.q4_k.p8.gemm.avx_vnni", &avx_vnni::MatmulRows<DType::kQ4_K>},
  {Op::kMatmul, DType::kQ5_K, kOne, kAvxVnni, "matmul.q5_k.p8.gemv.avx_vnni", &avx_vnni::MatmulOneRow<DType::kQ5_K>},
  {Op::kMatmul, DType::kQ5_K, kMany, kAvxVnni, "matmul.q5_k.p8.gemm.avx_vnni", &avx_vnni::MatmulRows<DType::kQ5_K>},
  {Op::kMatmul, DType::kQ6_K, kOne, kAvxVnni, "matmul.q6_k.p8.gemv.avx_vnni", &avx_vnni::MatmulOneRow<DType::kQ6_K>},
  {Op::kMatmul, DType::kQ6_K, kMany, kAvxVnni, "matmul.q6_k.p8.gemm.avx_vnni", &avx_vnni::MatmulRows<DType::kQ6_K>},

  {Op::kMatmul, DType::kQ4_0, kOne, kAvx2, "matmul.q4_0.p8.gemv.avx2", &avx2::MatmulOneRow<DType::kQ4_0>},
  {Op::kMatmul, DType::kQ4_0, kMany, kAvx2, "matmul.q4_0.p8.gemm.avx2", &avx2::MatmulRows<DType::kQ4_0>},
  {Op::kMatmul, DType::kQ4_1, kOne, kAvx2, "matmul.q4_1.p8.gemv.avx2", &avx2::MatmulOneRow<DType::kQ4_1>},
  {Op::kMatmul, DType::kQ4_1, kMany, kAvx2, "matmul.q4_1.p8.gemm.avx2", &avx2::MatmulRows<DType::kQ4_1>},
  {Op::kMatmul, DType::kQ8_0, kOne, kAvx2, "matmul.q8_0.p8.gemv.avx2", &avx2::MatmulOneRow<DType::kQ8_0>},
  {Op::kMatmul, DType::kQ8_0, kMany, kAvx2, "matmul.q8_0.p8.gemm.avx2", &avx2::MatmulRows<DType::kQ8_0>},
  {Op::kMatmul, DType::kQ5_0, kOne, kAvx2, "matmul.q5_0.p8.gemv.avx2", &avx2::MatmulOneRow<DType::kQ5_0>},
  {Op::kMatmul, DType::kQ5_0, kMany, kAvx2, "matmul.q5_0.p8.gemm.avx2", &avx2::MatmulRows<DType::kQ5_0>},
  {Op::kMatmul, DType::kQ5_1, kOne, kAvx2, "matmul.q5_1.p8.gemv.avx2", &avx2::MatmulOneRow<DType::kQ5_1>},
  {Op::kMatmul, DType::kQ5_1, kMany, kAvx2, "matmul.q5_1.p8.gemm.avx2", &avx2::MatmulRows<DType::kQ5_1>},
  {Op::kMatmul, DType::kQ4_K, kOne, kAvx2, "matmul.q4_k.p8.gemv.avx2", &avx2::MatmulOneRow<DType::kQ4_K>},
  {Op::kMatmul, DType::kQ4_K, kMany, kAvx2, "matmul.q4_k.p8.gemm.avx2", &avx2::MatmulRows<DType::kQ4_K>},
  {Op::kMatmul, DType::kQ5_K, kOne, kAvx2, "matmul.q5_k.p8.gemv.avx2", &avx2::MatmulOneRow<DType::kQ5_K>},
  {Op::kMatmul, DType::kQ5_K, kMany, kAvx2, "matmul.q5_k.p8.gemm.avx2", &avx2::MatmulRows<DType::kQ5_K>},
  {Op::kMatmul, DType::kQ6_K, kOne, kAvx2, "matmul.q6_k.p8.gemv.avx2", &avx2::MatmulOneRow<DType::kQ6_K>},
  {Op::kMatmul, DType::kQ6_K, kMany, kAvx2, "matmul.q6_k.p8.gemm.avx2", &avx2::MatmulRows<DType::kQ6_K>},
  {Op::kMatmul, DType::kF32, kMany, kAvx512, "matmul.f32.p8.gemm.avx512", &avx512::MatmulFloat<DType::kF32>},
  {Op::kMatmul, DType::kF16, kMany, kAvx512, "matmul.f16.p8.gemm.avx512", &avx512::MatmulFloat<DType::kF16>},
  {Op::kMatmul, DType::kBF16, kAny, kBf16, "matmul.bf16.p8.avx512_bf16", &avx512::MatmulDotBFloat16},
  {Op::kMatmul, DType::kBF16, kMany, kAvx512, "matmul.bf16.p8.gemm.avx512", &avx512::MatmulBFloat16},
  {Op::kMatmul, DType::kF32, kAny, kAvx2, "matmul.f32.p8.avx2", &avx2::MatmulFloat<DType::kF32>},
  {Op::kMatmul, DType::kF16, kAny, kAvx2, "matmul.f16.p8.avx2", &avx2::MatmulFloat<DType::kF16>},
  {Op::kMatmul, DType::kBF16, kAny, kAvx2, "matmul.bf16.p8.avx2", &avx2::MatmulBFloat16},

  {Op::kMatmul, DType::kQ4_0, kAny, kRef, "matmul.q4_0.p8.ref", &ref::Matmul<DType::kQ4_0>},
  {Op::kMatmul, DType::kQ4_1, kAny, kRef, "matmul.q4_1.p8.ref", &ref::Matmul<DType::kQ4_1>},
  {Op::kMatmul, DType::kQ8_0, kAny, kRef, "matmul.q8_0.p8.ref", &ref::Matmul<DType::kQ8_0>},
  {Op::kMatmul, DType::kQ5_0, kAny, kRef, "matmul.q5_0.p8.ref", &ref::Matmul<DType::kQ5_0>},
  {Op::kMatmul, DType::kQ5_1, kAny, kRef, "matmul.q5_1.p8.ref", &ref::Matmul<DType::kQ5_1>},
  {Op::kMatmul, DType::kQ4_K, kAny, kRef, "matmul.q4_k.p8.ref", &ref::Matmul<DType::kQ4_K>},
  {Op::kMatmul, DType::kQ5_K, kAny, kRef, "matmul.q5_k.p8.ref", &ref::Matmul<DType::kQ5_K>},
  {Op::kMatmul, DType::kQ6_K, kAny, kRef, "matmul.q6_k.p8.ref", &ref::Matmul<DType::kQ6_K>},
  {Op::kMatmul, DType::kF32,  kAny, kRef, "matmul.f32.p8.ref",  &ref::Matmul<DType::kF32>},
  {Op::kMatmul, DType::kF16,  kAny, kRef, "matmul.f16.p8.ref",  &ref::Matmul<DType::kF16>},
  {Op::kMatmul, DType::kBF16, kAny, kRef, "matmul.bf16.p8.ref", &ref::Matmul<DType::kBF16>},

  {Op::kQuantise, kNone, kAny, kAvx512, "quantise.avx512", &avx512::Quantise},
  {Op::kQuantise, kNone, kAny, kAvx2, "quantise.avx2", &avx2::Quantise},
  {Op::kRound, kNone, kAny, kAvx2, "round.avx2", &avx2::Round},
  {Op::kRmsNorm, kNone, kAny, kAvx2, "rms_norm.avx2", &avx2::RmsNorm},
  {Op::kRmsNormQuantise, kNone, kAny, kAvx512, "rms_norm_quantise.avx512", &avx512::RmsNormQuantise},
  {Op::kRmsNormQuantise, kNone, kAny, kAvx2, "rms_norm_quantise.avx2", &avx2::RmsNormQuantise},
  {Op::kRmsNormRound, kNone, kAny, kAvx2, "rms_norm_round.avx2", &avx2::RmsNormRound},
  {Op::kAdd, kNone, kAny, kAvx512, "add.avx512", &avx512::Add},
  {Op::kAdd, kNone, kAny, kAvx2, "add.avx2", &avx2::Add},
  {Op::kMul, kNone, kAny, kAvx512, "mul.avx512", &avx512::Mul},
  {Op::kMul, kNone, kAny, kAvx2, "mul.avx2", &avx2::Mul},
  {Op::kSiluGate, kNone, kAny, kAvx512, "silu_gate.avx512", &avx512::SiluGate},
  {Op::kSiluGate, kNone, kAny, kAvx2, "silu_gate.avx2", &avx2::SiluGate},
  {Op::kGeluGate, kNone, kAny, kAvx512, "gelu_gate.avx512", &avx512::GeluGate},
  {Op::kGeluGate, kNone, kAny, kAvx2, "gelu_gate.avx2", &avx2::GeluGate},
  {Op::kRope, kNone, kAny, kAvx2, "rope.avx2", &avx2::Rope},
  {Op::kFloatToHalf, kNone, kAny, kAvx2, "float_to_half.avx2", &avx2::FloatToHalf},
  {Op::kKvWrite, kNone, kAny, kAvx2, "kv_write.avx2", &avx2::KvWrite},
  {Op::kAttention, kNone, kAny, kAvx512, "attention.avx512", &avx512::Attention},
  {Op::kAttention, kNone, kAny, kAvx2, "attention.avx2", &avx2::Attention},
  {Op::kBlockMax, kNone, kAny, kAvx512, "block_max.avx512", &avx512::BlockMax},
  {Op::kBlockMax, kNone, kAny, kAvx2, "block_max.avx2", &avx2::BlockMax},
  {Op::kSoftmaxMass, kNone, kAny, kAvx512, "softmax_mass.avx512", &avx512::SoftmaxMass},
  {Op::kSoftmaxMass, kNone, kAny, kAvx2, "softmax_mass.avx2", &avx2::SoftmaxMass},

  {Op::kQuantise,        kNone, kAny, kRef, "quantise.ref",          &ref::Quantise},
  {Op::kRound,           kNone, kAny, kRef, "round.ref",             &ref::Round},
  {Op::kRmsNorm,         kNone, kAny, kRef, "rms_norm.ref",          &ref::RmsNorm},
  {Op::kRmsNormQuantise, kNone, kAny, kRef, "rms_norm_quantise.ref", &ref::RmsNormQuantise},
  {Op::kRmsNormRound,    kNone, kAny, kRef, "rms_norm_round.ref",    &ref::RmsNormRound},
  {Op::kAdd,             kNone, kAny, kRef, "add.ref",               &ref::Add},
  {Op::kMul,             kNone, kAny, kRef, "mul.ref",               &ref::Mul},
  {Op::kSiluGate,        kNone, kAny, kRef, "silu_gate.ref",         &ref::SiluGate},
  {Op::kGeluGate,        kNone, kAny, kRef, "gelu_gate.ref",         &ref::GeluGate},
  {Op::kRope,            kNone, kAny, kRef, "rope.ref",              &ref::Rope},
  {Op::kFloatToHalf,     kNone, kAny, kRef, "float_to_half.ref",     &ref::FloatToHalf},
  {Op::kKvWrite,         kNone, kAny, kRef, "kv_write.ref",          &ref::KvWrite},
  {Op::kAttention,       kNone, kAny, kRef, "attention.ref",         &ref::Attention},
  {Op::kBlockMax,        kNone, kAny, kRef, "block_max.ref",         &ref::BlockMax},
  {Op::kSoftmaxMass,     kNone, kAny, kRef, "softmax_mass.ref",      &ref::SoftmaxMass},
};
// clang-format on

constexpr std::array kIsas = {KernelIsa::kAvx2,       KernelIsa::kAvxVnni,    KernelIsa::kAvx512,
                              KernelIsa::kAvx512Vnni, KernelIsa::kAvx512Bf16, KernelIsa::kAmxInt8,
                              KernelIsa::kNeon};

/// The format part of an entry's name: "q4_1.p8". The reference row defines it.
std::string_view FormatPart(const Entry& reference) {
  std::string_view name = reference.name;
  name.remove_suffix(std::string_view(".ref").size());
  return name;
}

bool HasCell(const Entry& reference, KernelIsa isa) {
  for (const Entry& entry : kCatalog) {
    if (entry.op == reference.op && entry.weights == reference.weights && entry.isa == isa) {
      return true;
    }
  }
  return false;
}

/// Whether an ISA could serve the cell at all: dot-product ISAs are for int8 or bfloat16
/// activations.
bool Applies(const Entry& reference, KernelIsa isa) {
  if (isa == KernelIsa::kAvx512Bf16) return reference.weights == DType::kBF16;
  const bool dot =
      isa == KernelIsa::kAvxVnni || isa == KernelIsa::kAvx512Vnni || isa == KernelIsa::kAmxInt8;
  if (!dot) return true;
  return reference.op == Op::kMatmul && reference.weights != DType::kF32 &&
         reference.weights != DType::kF16 && reference.weights != DType::kBF16;
}

/// Whether this CPU's vdpbf16ps may be used, or cannot be asked because it has none.
bool DotIsTrusted() {
  static const bool trusted = !ReadIsa().avx512_bf16 || avx512::DotKeepsContract();
  return trusted;
}

template <class Fn>
Fn FunctionOf(Op op, const Isa& machine) {
  return std::get<Fn>(Find(op, std::nullopt, RowsClass::kAny, machine)->fn);
}

}  // namespace

std::string_view Name(Op op) {
  switch (op) {
    case Op::kMatmul:
      return "matmul";
    case Op::kQuantise:
      return "quantise";
    case Op::kRound:
      return "round";
    case Op::kRmsNorm:
      return "rms_norm";
    case Op::kRmsNormQuantise:
      return "rms_norm_quantise";
    case Op::kRmsNormRound:
      return "rms_norm_round";
    case Op::kAdd:
      return "add";
    case Op::kMul:
      return "mul";
    case Op::kSiluGate:
      return "silu_gate";
    case Op::kGeluGate:
      return "gelu_gate";
    case Op::kRope:
      return "rope";
    case Op::kFloatToHalf:
      return "float_to_half";
    case Op::kKvWrite:
      return "kv_write";
    case Op::kAttention:
      return "attention";
    case Op::kBlockMax:
      return "block_max";
    case Op::kSoftmaxMass:
      return "softmax_mass";
  }
  return "";
}

std::string_view Name(KernelIsa isa) {
  switch (isa) {
    case KernelIsa::kRef:
      return "ref";
    case KernelIsa::kAvx2:
      return "avx2";
    case KernelIsa::kAvxVnni:
      return "avx_vnni";
    case KernelIsa::kAvx512:
      return "avx512";
    case KernelIsa::kAvx512Vnni:
      return "avx512_vnni";
    case KernelIsa::kAvx512Bf16:
      return "avx512_bf16";
    case KernelIsa::kAmxInt8:
      return "amx_int8";
    case KernelIsa::kNeon:
      return "neon";
  }
  return "";
}

std::span<const Entry> Catalog() {
  return kCatalog;
}

bool Runs(KernelIsa isa, const Isa& machine) {
  switch (isa) {
    case KernelIsa::kRef:
      return true;
    case KernelIsa::kAvx2:
      return machine.avx2;
    case KernelIsa::kAvxVnni:
      return machine.avx2 && machine.avx_vnni;
    case KernelIsa::kAvx512:
      return machine.avx512;
    case KernelIsa::kAvx512Vnni:
      return machine.avx512_vnni;
    case KernelIsa::kAvx512Bf16:
      return machine.avx512_bf16 && DotIsTrusted();
    case KernelIsa::kAmxInt8:
      return machine.amx_int8;
    case KernelIsa::kNeon:
      return false;
  }
  return false;
}

const Entry* Find(Op op, std::optional<DType> weights, RowsClass rows, const Isa& machine) {
  for (const Entry& entry : kCatalog) {
    const bool fits = entry.rows == kAny || rows == kAny || entry.rows == rows;
    if (entry.op == op && entry.weights == weights && fits && Runs(entry.isa, machine)) {
      return &entry;
    }
  }
  return nullptr;
}

const Entry* FindByName(std::string_view name, const Isa& machine) {
  for (const Entry& entry : kCatalog) {
    if (entry.name == name) return Runs(entry.isa, machine) ? &entry : nullptr;
  }
  return nullptr;
}

RowKernels SelectRowKernels(const Isa& machine) {
  return {.quantise = FunctionOf<QuantiseFn>(Op::kQuantise, machine),
          .round = FunctionOf<RoundFn>(Op::kRound, machine),
          .rms_norm = FunctionOf<RmsNormFn>(Op::kRmsNorm, machine),
          .rms_norm_quantise = FunctionOf<RmsNormFn>(Op::kRmsNormQuantise, machine),
          .rms_norm_round = FunctionOf<RmsNormFn>(Op::kRmsNormRound, machine),
          .add = FunctionOf<BinaryFn>(Op::kAdd, machine),
          .mul = FunctionOf<BinaryFn>(Op::kMul, machine),
          .silu_gate = FunctionOf<GatedFn>(Op::kSiluGate, machine),
          .gelu_gate = FunctionOf<GatedFn>(Op::kGeluGate, machine),
          .rope = FunctionOf<RopeFn>(Op::kRope, machine),
          .float_to_half = FunctionOf<FloatToHalfFn>(Op::kFloatToHalf, machine),
          .kv_write = FunctionOf<KvWriteFn>(Op::kKvWrite, machine),
          .attention = FunctionOf<AttentionFn>(Op::kAttention, machine),
          .block_max = FunctionOf<BlockMaxFn>(Op::kBlockMax, machine),
          .softmax_mass = FunctionOf<SoftmaxMassFn>(Op::kSoftmaxMass, machine)};
}

std::vector<std::string> EmptyCells() {
  std::vector<std::string> cells;
  for (const Entry& entry : kCatalog) {
    if (entry.isa != KernelIsa::kRef) continue;
    for (const KernelIsa isa : kIsas) {
      if (!Applies(entry, isa) || HasCell(entry, isa)) continue;
      cells.push_back(std::string(FormatPart(entry)) + "." + std::string(Name(isa)));
    }
  }
  return cells;
}

}  // namespace tessera::kernels
