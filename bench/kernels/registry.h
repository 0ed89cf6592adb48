// SPDX-License-Identifier: Apache-2.0
//
// What the files of kernel_bench share: one Register function each, inputs, counters. One thread;
// every entry of the kernels' catalog that this machine can run, the scalar references left out.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "base/random.h"
#include "kernels/catalog.h"

namespace tessera::kernels {

void RegisterMatmul();
void RegisterAttention();
void RegisterRows();
void RegisterPack();
void RegisterMemory();
void RegisterSampler();

/// Bytes aligned to a page, not filled.
class Memory {
 public:
  explicit Memory(int64_t bytes)
      : data_(static_cast<std::byte*>(
            ::operator new (static_cast<size_t>(bytes), std::align_val_t{4096}))) {}
  ~Memory() { ::operator delete (data_, std::align_val_t{4096}); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <class T = std::byte>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_;
};

/// Small f16 and f32 exponents in every position: no NaN, no denormal sums.
inline void FillRandom(std::byte* data, int64_t bytes, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t word = random() & 0x3fff3fff3fff3fffu;
    std::memcpy(data + i, &word, 8);
  }
}

inline void FillNormal(float* data, int64_t count, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(random.Normal());
}

/// `per_iteration` a second, in billions.
inline benchmark::Counter Billions(double per_iteration) {
  return {1e-9 * per_iteration, benchmark::Counter::kIsIterationInvariantRate};
}

}  // namespace tessera::kernels
