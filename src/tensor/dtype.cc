// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <fmt/format.h>

#include <array>

#include "base/bytes.h"
#include "base/check.h"

namespace tessera::tensor {
namespace {

// One row per type; the columns are those of DTypeInfo. Sizes of block formats are written as the
// sum of their fields: f16 scales are 2, packed quants and their scales follow.
constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    // clang-format off
    {DType::kF64,        "F64",         "F64",     "float64",         1,   8,                28},
    {DType::kF32,        "F32",         "F32",     "float32",         1,   4,                0},
    {DType::kF16,        "F16",         "F16",     "float16",         1,   2,                1},
    {DType::kBF16,       "BF16",        "BF16",    "bfloat16",        1,   2,                30},
    {DType::kF8E4M3,     "F8_E4M3",     "F8_E4M3", "float8_e4m3fn",   1,   1,                -1},
    {DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", "",        "float8_e4m3fnuz", 1,   1,                -1},
    {DType::kF8E5M2,     "F8_E5M2",     "F8_E5M2", "float8_e5m2",     1,   1,                -1},
    {DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", "",        "float8_e5m2fnuz", 1,   1,                -1},
    {DType::kF8E8M0,     "F8_E8M0",     "F8_E8M0", "float8_e8m0fnu",  1,   1,                -1},
    {DType::kI64,        "I64",         "I64",     "int64",           1,   8,                27},
    {DType::kI32,        "I32",         "I32",     "int32",           1,   4,                26},
    {DType::kI16,        "I16",         "I16",     "int16",           1,   2,                25},
    {DType::kI8,         "I8",          "I8",      "int8",            1,   1,                24},
    {DType::kU64,        "U64",         "U64",     "uint64",          1,   8,                -1},
    {DType::kU32,        "U32",         "U32",     "uint32",          1,   4,                -1},
    {DType::kU16,        "U16",         "U16",     "uint16",          1,   2,                -1},
    {DType::kU8,         "U8",          "U8",      "uint8",           1,   1,                -1},
    {DType::kBool,       "BOOL",        "BOOL",    "bool",            1,   1,                -1},
    {DType::kComplex64,  "C64",         "C64",     "complex64",       1,   8,                -1},
    {DType::kComplex128, "C128",        "",        "complex128",      1,   16,               -1},
    {DType::kQ4_0,       "Q4_0",        "",        "",                32,  2 + 16,           2},
    {DType::kQ4_1,       "Q4_1",        "",        "",                32,  2 + 2 + 16,       3},
    {DType::kQ5_0,       "Q5_0",        "",        "",                32,  2 + 4 + 16,       6},
    {DType::kQ5_1,       "Q5_1",        "",        "",                32,  2 + 2 + 4 + 16,   7},
    {DType::kQ8_0,       "Q8_0",        "",        "",                32,  2 + 32,           8},
    {DType::kQ8_1,       "Q8_1",        "",        "",                32,  4 + 4 + 32,       9},
    {DType::kQ2_K,       "Q2_K",        "",        "",                256, 16 + 64 + 2 + 2,  10},
    {DType::kQ3_K,       "Q3_K",        "",        "",                256, 32 + 64 + 12 + 2, 11},
    {DType::kQ4_K,       "Q4_K",        "",        "",                256, 2 + 2 + 12 + 128, 12},
    {DType::kQ5_K,       "Q5_K",        "",        "",                256, 2 + 2 + 12 + 32 + 128, 13},
    {DType::kQ6_K,       "Q6_K",        "",        "",                256, 128 + 64 + 16 + 2, 14},
    {DType::kQ8_K,       "Q8_K",        "",        "",                256, 4 + 256 + 32,     15},
    {DType::kIQ1_S,      "IQ1_S",       "",        "",                256, 2 + 32 + 16,      19},
    {DType::kIQ1_M,      "IQ1_M",       "",        "",                256, 32 + 16 + 8,      29},
    {DType::kIQ2_XXS,    "IQ2_XXS",     "",        "",                256, 2 + 64,           16},
    {DType::kIQ2_XS,     "IQ2_XS",      "",        "",                256, 2 + 64 + 8,       17},
    {DType::kIQ2_S,      "IQ2_S",       "",        "",                256, 2 + 64 + 8 + 8,   22},
    {DType::kIQ3_XXS,    "IQ3_XXS",     "",        "",                256, 2 + 64 + 32,      18},
    {DType::kIQ3_S,      "IQ3_S",       "",        "",                256, 2 + 64 + 8 + 32 + 4, 21},
    {DType::kIQ4_NL,     "IQ4_NL",      "",        "",                32,  2 + 16,           20},
    {DType::kIQ4_XS,     "IQ4_XS",      "",        "",                256, 2 + 2 + 4 + 128,  23},
    {DType::kTQ1_0,      "TQ1_0",       "",        "",                256, 48 + 4 + 2,       34},
    {DType::kTQ2_0,      "TQ2_0",       "",        "",                256, 64 + 2,           35},
    {DType::kMXFP4,      "MXFP4",       "",        "",                32,  1 + 16,           39},
    {DType::kNVFP4,      "NVFP4",       "",        "",                64,  4 + 32,           40},
    {DType::kQ1_0,       "Q1_0",        "",        "",                128, 2 + 16,           41},
    // clang-format on
}};

constexpr bool RowsFollowTheEnum() {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kTable[static_cast<size_t>(i)].dtype != static_cast<DType>(i)) return false;
  return true;
}
static_assert(RowsFollowTheEnum());

char Upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (Upper(a[i]) != Upper(b[i])) return false;
  return true;
}

template <class Matches>
std::optional<DType> FindIf(Matches matches) {
  for (const DTypeInfo& info : kTable)
    if (matches(info)) return info.dtype;
  return std::nullopt;
}

}  // namespace

const DTypeInfo& Info(DType dtype) {
  TESSERA_CHECK(static_cast<int>(dtype) < kDTypeCount);
  return kTable[static_cast<size_t>(dtype)];
}

std::span<const DTypeInfo> AllDTypes() {
  return kTable;
}

std::optional<DType> FindByName(std::string_view name) {
  return FindIf([&](const DTypeInfo& info) { return EqualsIgnoringCase(info.name, name); });
}

std::optional<DType> FindByGgufId(uint32_t id) {
  return FindIf([&](const DTypeInfo& info) {
    return info.gguf_id >= 0 && static_cast<uint32_t>(info.gguf_id) == id;
  });
}

std::optional<DType> FindBySafetensorsName(std::string_view name) {
  if (name.empty()) return std::nullopt;
  return FindIf([&](const DTypeInfo& info) { return info.safetensors == name; });
}

std::optional<DType> FindByTorchName(std::string_view name) {
  if (name.empty()) return std::nullopt;
  return FindIf([&](const DTypeInfo& info) { return info.torch == name; });
}

Result<uint64_t> RowBytes(DType dtype, uint64_t elements) {
  const DTypeInfo& info = Info(dtype);
  if (elements % info.block_elements != 0)
    return Fail(
        InvalidArgument(fmt::format("a row of {} elements is no multiple of {}'s block of {}",
                                    elements, info.name, info.block_elements)));
  uint64_t bytes = 0;
  if (MulOverflows(elements / info.block_elements, info.block_bytes, &bytes))
    return Fail(InvalidArgument(
        fmt::format("the bytes of a row of {} {} elements overflow 64 bits", elements, info.name)));
  return bytes;
}

}  // namespace tessera::tensor
