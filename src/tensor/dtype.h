// SPDX-License-Identifier: Apache-2.0
//
// DType: every element and block format that a parameter file of ours can name, described as data.
// Plain types have blocks of one element; quantisation formats pack `block_elements` values along
// the innermost dimension into `block_bytes`. Block layouts follow ggml's (the GGUF specification,
// ggml-common.h): that is what the files hold.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"

namespace tessera::tensor {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E4M3Fnuz,
  kF8E5M2,
  kF8E5M2Fnuz,
  kF8E8M0,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kComplex64,
  kComplex128,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ8_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ8_K,
  kIQ1_S,
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kIQ4_NL,
  kIQ4_XS,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
  kQ1_0,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kQ1_0) + 1;

struct DTypeInfo {
  DType dtype;
  std::string_view name;         // "F32", "Q4_K": ours, and ggml's where it has the type.
  std::string_view safetensors;  // "F8_E4M3"; empty when safetensors has no such type.
  std::string_view torch;        // "float8_e4m3fn" (IRPA, config.json); or empty.
  uint32_t block_elements;       // 1 for plain types.
  uint32_t block_bytes;
  int32_t gguf_id;  // ggml_type, or -1 when GGUF has no such type.
};

/// Total.
const DTypeInfo& Info(DType dtype);
/// All of them, in the order of the enum.
std::span<const DTypeInfo> AllDTypes();
inline std::string_view Name(DType dtype) {
  return Info(dtype).name;
}
inline bool IsQuantised(DType dtype) {
  return Info(dtype).block_elements > 1;
}

/// By name as in `Info().name`, ASCII case ignored; nothing when unknown.
std::optional<DType> FindByName(std::string_view name);
/// By ggml_type; nothing when unknown (ids that ggml removed are unknown).
std::optional<DType> FindByGgufId(uint32_t id);
/// By safetensors' spelling, exactly.
std::optional<DType> FindBySafetensorsName(std::string_view name);
/// By torch's spelling ("bfloat16", "bool"), exactly.
std::optional<DType> FindByTorchName(std::string_view name);

/// Bytes of one row of `elements`. kInvalidArgument when the block size does not divide it, or the
/// product overflows.
Result<uint64_t> RowBytes(DType dtype, uint64_t elements);

}  // namespace tessera::tensor
