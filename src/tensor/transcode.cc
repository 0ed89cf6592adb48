// SPDX-License-Identifier: Apache-2.0
#include "tensor/transcode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/convert.h"

namespace tessera::tensor {
namespace {

constexpr int64_t kQ8Elements = 32;
constexpr size_t kQ8Bytes = 34;  // d, codes[32]

/// Magnitudes that a weight may have in units of its block's step, largest first. MXFP4 counts
/// halves, IQ1_S eighths.
std::span<const int> Magnitudes(DType from) {
  static constexpr std::array<int, 16> kIq4 = {127, 113, 104, 89, 83, 69, 65, 53,
                                               49,  38,  35,  25, 22, 13, 10, 1};
  static constexpr std::array<int, 8> kIq3Xxs = {62, 52, 44, 36, 28, 20, 12, 4};
  static constexpr std::array<int, 8> kIq3S = {15, 13, 11, 9, 7, 5, 3, 1};
  static constexpr std::array<int, 7> kMxfp4 = {12, 8, 6, 4, 3, 2, 1};
  static constexpr std::array<int, 3> kIq2 = {43, 25, 8};
  static constexpr std::array<int, 3> kIq1 = {9, 7, 1};
  static constexpr std::array<int, 1> kTernary = {1};
  switch (from) {
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return kIq4;
    case DType::kIQ3_XXS:
      return kIq3Xxs;
    case DType::kIQ3_S:
      return kIq3S;
    case DType::kMXFP4:
      return kMxfp4;
    case DType::kIQ2_XXS:
      return kIq2;
    case DType::kIQ1_S:
      return kIq1;
    case DType::kTQ1_0:
    case DType::kTQ2_0:
      return kTernary;
    default:
      return {};
  }
}

/// Whether all 32 values are whole multiples of `step`, up to the rounding of float32.
bool AreMultiples(const float* values, float step) {
  return std::all_of(values, values + kQ8Elements, [&](float value) {
    const float code = value / step;
    return std::abs(code) < 127.5f && std::abs(code - std::nearbyint(code)) < 1e-3f;
  });
}

/// The block's step: one that f16 holds if there is one, else any; 0 when none fits.
float StepOf(std::span<const int> magnitudes, const float* values) {
  float largest = 0;
  for (int64_t i = 0; i < kQ8Elements; ++i) largest = std::max(largest, std::abs(values[i]));
  float found = 0;
  for (const int magnitude : magnitudes) {
    const float step = largest / static_cast<float>(magnitude);
    if (!(step > 0) || !AreMultiples(values, step)) continue;
    if (HalfToFloat(FloatToHalf(step)) == step) return step;
    if (found == 0) found = step;
  }
  return found;
}

/// 32 values to one Q8_0 block. All zeros give zeros.
void PutQ8(std::span<const int> magnitudes, const float* values, std::byte* block) {
  const float step = StepOf(magnitudes, values);
  const uint16_t scale = FloatToHalf(step);
  std::memcpy(block, &scale, sizeof(scale));
  for (int64_t i = 0; i < kQ8Elements; ++i) {
    const float code = step > 0 ? std::nearbyint(values[i] / step) : 0.0f;
    block[2 + i] = static_cast<std::byte>(static_cast<int8_t>(code));
  }
}

/// One Q3_K block to one Q6_K block: the same sixteen scales and d, codes -4..3 as 28..35.
/// Layouts: convert_k_quants.cc.
void Q3ToQ6(const uint8_t* from, uint8_t* to) {
  const uint8_t* high = from;
  const uint8_t* quants = from + 32;
  const uint8_t* packed = from + 96;
  std::memset(to, 0, 192);
  for (int g = 0; g < 16; ++g) {
    const int low_bits = (packed[g % 8] >> (4 * (g / 8))) & 0xf;
    const int high_bits = (packed[8 + g % 4] >> (2 * (g / 4))) & 3;
    to[192 + g] = static_cast<uint8_t>((low_bits | high_bits << 4) - 32);
  }
  std::memcpy(to + 208, from + 108, 2);
  for (int i = 0; i < 256; ++i) {
    const int two = (quants[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32))) & 3;
    const int has_high = (high[i % 32] >> (i / 32)) & 1;
    const int code = two - (has_high != 0 ? 0 : 4) + 32;
    to[i / 128 * 64 + i % 64] |= static_cast<uint8_t>((code & 0xf) << (4 * (i % 128 / 64)));
    to[128 + i / 128 * 32 + i % 32] |= static_cast<uint8_t>((code >> 4) << (2 * (i % 128 / 32)));
  }
}

}  // namespace

std::optional<Transcoding> TranscodingOf(DType from) {
  switch (from) {
    case DType::kQ3_K:
      return Transcoding{DType::kQ6_K, true};
    case DType::kIQ4_NL:
    case DType::kMXFP4:
    case DType::kTQ1_0:
    case DType::kTQ2_0:
      return Transcoding{DType::kQ8_0, true};
    case DType::kIQ4_XS:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
    case DType::kIQ2_XXS:
    case DType::kIQ1_S:
      return Transcoding{DType::kQ8_0, false};
    default:
      return std::nullopt;
  }
}

Result<std::vector<std::byte>> Transcode(DType from, ByteSpan bytes) {
  const std::optional<Transcoding> transcoding = TranscodingOf(from);
  if (!transcoding)
    return Fail(Unimplemented(fmt::format("no format holds {} as it is", Name(from))));
  const DTypeInfo& info = Info(from);
  if (bytes.size() % info.block_bytes != 0)
    return Fail(InvalidArgument(fmt::format("{} bytes of {}, expected a multiple of {}",
                                            bytes.size(), Name(from), info.block_bytes)));
  const size_t blocks = bytes.size() / info.block_bytes;
  if (from == DType::kQ3_K) {
    const size_t to_bytes = Info(DType::kQ6_K).block_bytes;
    std::vector<std::byte> out(blocks * to_bytes);
    for (size_t b = 0; b < blocks; ++b)
      Q3ToQ6(reinterpret_cast<const uint8_t*>(bytes.data()) + b * info.block_bytes,
             reinterpret_cast<uint8_t*>(out.data()) + b * to_bytes);
    return out;
  }
  std::vector<float> values(blocks * info.block_elements);
  TESSERA_RETURN_IF_ERROR(ToFloat(from, bytes, values));
  std::vector<std::byte> out(values.size() / kQ8Elements * kQ8Bytes);
  for (size_t b = 0; b < values.size() / kQ8Elements; ++b)
    PutQ8(Magnitudes(from), values.data() + b * kQ8Elements, out.data() + b * kQ8Bytes);
  return out;
}

}  // namespace tessera::tensor
