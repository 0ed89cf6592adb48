// SPDX-License-Identifier: Apache-2.0
#include "tensor/convert.h"

#include <fmt/format.h>

#include <bit>

#include "tensor/convert_blocks.h"

namespace tessera::tensor {
namespace {

BlockDecoder FindDecoder(DType dtype) {
  for (auto* find : {FindPlainDecoder, FindLegacyDecoder, FindKQuantDecoder, FindIqDecoder,
                     FindSmallFloatDecoder})
    if (BlockDecoder decoder = find(dtype); decoder != nullptr) return decoder;
  return nullptr;
}

}  // namespace

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // Zero or subnormal: mantissa * 2^-24 is exact in float32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t rebiased = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | rebiased << 23 | mantissa << 13);
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)  // NaN: keep the top payload bits, force quiet.
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff));
  if (magnitude >= 0x477ff000)  // From 65520 on, halfway to the next power of two, it is infinity.
    return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {  // Below 2^-14: the result is a multiple of 2^-24.
    // Adding 0.5 shifts the units place to 2^-24, so the adder itself rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  const uint32_t rounded = magnitude + 0xfff + odd;
  return static_cast<uint16_t>(sign | ((rounded - ((127u - 15u) << 23)) >> 13));
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

bool CanConvertToFloat(DType dtype) {
  return FindDecoder(dtype) != nullptr;
}

Status ToFloat(DType dtype, ByteSpan bytes, std::span<float> out) {
  const DTypeInfo& info = Info(dtype);
  TESSERA_ASSIGN_OR_RETURN(const uint64_t expected, RowBytes(dtype, out.size()));
  if (bytes.size() != expected)
    return InvalidArgument(fmt::format("{} elements of {} are {} bytes, but {} were given",
                                       out.size(), info.name, expected, bytes.size()));
  const BlockDecoder decode = FindDecoder(dtype);
  if (decode == nullptr)
    return Unimplemented(fmt::format("{} cannot be converted to float32", info.name));
  const auto* block = reinterpret_cast<const uint8_t*>(bytes.data());
  // The types that models come in, without a call an element: quantising waits for this.
  if (dtype == DType::kBF16) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = BFloat16ToFloat(Load<uint16_t>(block + 2 * i));
    return {};
  }
  if (dtype == DType::kF16) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = HalfToFloat(Load<uint16_t>(block + 2 * i));
    return {};
  }
  for (size_t i = 0; i < out.size(); i += info.block_elements, block += info.block_bytes)
    decode(block, &out[i]);
  return {};
}

Status RowToFloat(const TensorView& view, int64_t row, std::span<float> out) {
  const auto columns = static_cast<uint64_t>(view.shape.columns());
  if (out.size() != columns)
    return InvalidArgument(fmt::format("a row of shape {} has {} elements, the output {}",
                                       view.shape.ToString(), columns, out.size()));
  TESSERA_ASSIGN_OR_RETURN(const uint64_t row_bytes, RowBytes(view.dtype, columns));
  if (row < 0 || row >= view.shape.rows())
    return OutOfRange(fmt::format("row {} of shape {}", row, view.shape.ToString()));
  const uint64_t begin = static_cast<uint64_t>(row) * row_bytes;
  if (begin > view.bytes.size() || view.bytes.size() - begin < row_bytes)
    return InvalidArgument(fmt::format("row {} ends at byte {}, but the tensor has {} bytes", row,
                                       begin + row_bytes, view.bytes.size()));
  return ToFloat(view.dtype, view.bytes.subspan(begin, row_bytes), out);
}

}  // namespace tessera::tensor
