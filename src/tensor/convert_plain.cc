// SPDX-License-Identifier: Apache-2.0
//
// Plain numbers. The 8-bit floats follow the OCP 8-bit floating point specification (E4M3 without
// infinities, E5M2, E8M0 scales) and, for the FNUZ forms, "8-bit numerical formats for deep neural
// networks" (Noune et al., 2022): one more in the bias, no negative zero, 0x80 is NaN.
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/convert.h"
#include "tensor/convert_blocks.h"

namespace tessera::tensor {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
void Number(const uint8_t* block, float* out) {
  *out = static_cast<float>(Load<T>(block));
}

void Bool(const uint8_t* block, float* out) {
  *out = *block != 0 ? 1.0f : 0.0f;
}
void Half(const uint8_t* block, float* out) {
  *out = HalfToFloat(Load<uint16_t>(block));
}
void BFloat16(const uint8_t* block, float* out) {
  *out = BFloat16ToFloat(Load<uint16_t>(block));
}

// Value of sign, exponent and mantissa bits of a small float, all codes being finite.
float Finite8(uint8_t bits, int mantissa_bits, int bias) {
  const int exponent = (bits & 0x7f) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int units = exponent == 0 ? mantissa : mantissa | 1 << mantissa_bits;
  const int scale = (exponent == 0 ? 1 : exponent) - bias - mantissa_bits;
  const float magnitude = std::ldexp(static_cast<float>(units), scale);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

void F8E4M3(const uint8_t* block, float* out) {
  *out = (*block & 0x7f) == 0x7f ? std::copysign(kNan, (*block & 0x80) != 0 ? -1.0f : 1.0f)
                                 : Finite8(*block, 3, 7);
}

void F8E4M3Fnuz(const uint8_t* block, float* out) {
  *out = *block == 0x80 ? kNan : Finite8(*block, 3, 8);
}

// E5M2 is the upper byte of a half.
void F8E5M2(const uint8_t* block, float* out) {
  *out = HalfToFloat(static_cast<uint16_t>(*block << 8));
}

void F8E5M2Fnuz(const uint8_t* block, float* out) {
  *out = *block == 0x80 ? kNan : Finite8(*block, 2, 16);
}

void F8E8M0(const uint8_t* block, float* out) {
  *out = *block == 0xff ? kNan : std::ldexp(1.0f, *block - 127);
}

}  // namespace

BlockDecoder FindPlainDecoder(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return Number<double>;
    case DType::kF32:
      return Number<float>;
    case DType::kF16:
      return Half;
    case DType::kBF16:
      return BFloat16;
    case DType::kF8E4M3:
      return F8E4M3;
    case DType::kF8E4M3Fnuz:
      return F8E4M3Fnuz;
    case DType::kF8E5M2:
      return F8E5M2;
    case DType::kF8E5M2Fnuz:
      return F8E5M2Fnuz;
    case DType::kF8E8M0:
      return F8E8M0;
    case DType::kI64:
      return Number<int64_t>;
    case DType::kI32:
      return Number<int32_t>;
    case DType::kI16:
      return Number<int16_t>;
    case DType::kI8:
      return Number<int8_t>;
    case DType::kU64:
      return Number<uint64_t>;
    case DType::kU32:
      return Number<uint32_t>;
    case DType::kU16:
      return Number<uint16_t>;
    case DType::kU8:
      return Number<uint8_t>;
    case DType::kBool:
      return Bool;
    default:
      return nullptr;
  }
}

}  // namespace tessera::tensor
