// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/convert.h"

namespace tessera::tensor {
namespace {

constexpr int kBlock = 32;

using BlockEncoder = void (*)(const float* values, uint8_t* block);

void PutHalf(float value, uint8_t* out) {
  const uint16_t bits = FloatToHalf(value);
  std::memcpy(out, &bits, sizeof(bits));
}

void F32(const float* values, uint8_t* block) {
  std::memcpy(block, values, sizeof(float));
}
void F16(const float* values, uint8_t* block) {
  PutHalf(*values, block);
}
void BF16(const float* values, uint8_t* block) {
  const uint16_t bits = FloatToBFloat16(*values);
  std::memcpy(block, &bits, sizeof(bits));
}

float Inverse(float scale) {
  return scale == 0.0f ? 0.0f : 1.0f / scale;
}

void Q8_0(const float* values, uint8_t* block) {
  float largest = 0.0f;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(values[i]));
  const float d = largest / 127.0f;
  const float inverse = Inverse(d);
  PutHalf(d, block);
  for (int i = 0; i < kBlock; ++i)
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(values[i] * inverse)));
}

// Nibble of a scaled value that should lie in [0, 15] up to rounding.
uint8_t Nibble(float scaled) {
  return static_cast<uint8_t>(std::clamp(std::trunc(scaled), 0.0f, 15.0f));
}

// The scale comes from the element of largest magnitude and maps it to code 0, that is -8.
void Q4_0(const float* values, uint8_t* block) {
  float extreme = values[0];
  for (int i = 1; i < kBlock; ++i)
    if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
  const float d = extreme / -8.0f;
  const float inverse = Inverse(d);
  PutHalf(d, block);
  for (int j = 0; j < kBlock / 2; ++j) {
    const uint8_t low = Nibble(values[j] * inverse + 8.5f);
    const uint8_t high = Nibble(values[j + kBlock / 2] * inverse + 8.5f);
    block[2 + j] = static_cast<uint8_t>(low | high << 4);
  }
}

void Q4_1(const float* values, uint8_t* block) {
  const auto [smallest, largest] = std::minmax_element(values, values + kBlock);
  const float m = *smallest;
  const float d = (*largest - m) / 15.0f;
  const float inverse = Inverse(d);
  PutHalf(d, block);
  PutHalf(m, block + 2);
  for (int j = 0; j < kBlock / 2; ++j) {
    const uint8_t low = Nibble((values[j] - m) * inverse + 0.5f);
    const uint8_t high = Nibble((values[j + kBlock / 2] - m) * inverse + 0.5f);
    block[4 + j] = static_cast<uint8_t>(low | high << 4);
  }
}

BlockEncoder FindEncoder(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return F32;
    case DType::kF16:
      return F16;
    case DType::kBF16:
      return BF16;
    case DType::kQ8_0:
      return Q8_0;
    case DType::kQ4_0:
      return Q4_0;
    case DType::kQ4_1:
      return Q4_1;
    default:
      return nullptr;
  }
}

}  // namespace

bool CanQuantise(DType dtype) {
  return FindEncoder(dtype) != nullptr;
}

Result<std::vector<std::byte>> Quantise(DType dtype, std::span<const float> values) {
  const DTypeInfo& info = Info(dtype);
  const BlockEncoder encode = FindEncoder(dtype);
  if (encode == nullptr)
    return Fail(Unimplemented(fmt::format("float32 cannot be converted to {}", info.name)));
  TESSERA_ASSIGN_OR_RETURN(const uint64_t size, RowBytes(dtype, values.size()));
  std::vector<std::byte> bytes(size);
  auto* block = reinterpret_cast<uint8_t*>(bytes.data());
  for (size_t i = 0; i < values.size(); i += info.block_elements, block += info.block_bytes)
    encode(&values[i], block);
  return bytes;
}

}  // namespace tessera::tensor
