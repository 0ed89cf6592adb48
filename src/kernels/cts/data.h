// SPDX-License-Identifier: Apache-2.0
//
// Inputs for kernel tests: random weights of every format, random activations, aligned buffers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "base/random.h"
#include "kernels/matmul.h"
#include "kernels/pack.h"
#include "kernels/ref/scalar.h"
#include "tensor/convert.h"
#include "tensor/dtype.h"

namespace tessera::kernels::cts {

/// Bytes aligned to 64, filled with 0xa5 so that unwritten results show.
class Buffer {
 public:
  explicit Buffer(int64_t bytes)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(
            ::operator new (static_cast<size_t>(bytes + 64), std::align_val_t{64}))) {
    std::memset(data_, 0xa5, static_cast<size_t>(bytes + 64));
  }
  ~Buffer() { ::operator delete (data_, std::align_val_t{64}); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  int64_t size() const { return bytes_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

 private:
  int64_t bytes_;
  std::byte* data_;
};

inline std::vector<float> RandomFloats(Random& random, int64_t count, float deviation = 1) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = deviation * static_cast<float>(random.Normal());
  return values;
}

/// f16 fields at the front of a block of `dtype` (scales), or at its end for Q6_K.
inline void PutScales(tensor::DType dtype, Random& random, std::byte* block, size_t bytes) {
  const auto half = [&] {
    return ref::FloatToHalf(static_cast<float>(0.02 * (random.Uniform() - 0.4)));
  };
  const auto put = [&](size_t at) {
    const uint16_t h = half();
    std::memcpy(block + at, &h, 2);
  };
  using tensor::DType;
  if (dtype == DType::kQ6_K) return put(bytes - 2);
  put(0);
  const bool second = dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ4_K ||
                      dtype == DType::kQ5_K;
  if (second) put(2);
}

/// n rows of k inputs as a file holds them: random codes (every bit pattern), finite scales.
inline std::vector<std::byte> RandomWeights(tensor::DType dtype, int64_t n, int64_t k,
                                            Random& random) {
  const tensor::DTypeInfo& info = tensor::Info(dtype);
  const int64_t blocks = n * k / info.block_elements;
  std::vector<std::byte> bytes(static_cast<size_t>(blocks * info.block_bytes));
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  for (int64_t i = 0; i < blocks; ++i) {
    std::byte* block = bytes.data() + i * info.block_bytes;
    const auto value = static_cast<float>(0.05 * random.Normal());
    const uint16_t h = ref::FloatToHalf(value);
    const uint16_t b = tensor::FloatToBFloat16(value);
    if (dtype == tensor::DType::kF32) std::memcpy(block, &value, 4);
    if (dtype == tensor::DType::kF16) std::memcpy(block, &h, 2);
    if (dtype == tensor::DType::kBF16) std::memcpy(block, &b, 2);
    if (info.block_elements > 1) PutScales(dtype, random, block, info.block_bytes);
  }
  return bytes;
}

inline int64_t SourceRowBytes(tensor::DType dtype, int64_t k) {
  return static_cast<int64_t>(*tensor::RowBytes(dtype, static_cast<uint64_t>(k)));
}

}  // namespace tessera::kernels::cts
