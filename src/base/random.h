// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A draw is a pure function of (seed, stream, position), so that sampling gives
// the same token whatever the batch or schedule was. Also a small sequential generator for tests.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

/// The ten-round Philox block for a 128-bit counter and 64-bit key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Uniform in [0, 1) with 53 random bits, from the block (position, stream) under `seed`.
double UniformAt(uint64_t seed, uint64_t stream, uint64_t position);

/// Unpredictable bits from the system, for requests that name no seed and for identifiers.
uint64_t SystemRandom64();

/// Sequential generator (UniformRandomBitGenerator) over Philox; same seed, same numbers.
class Random {
 public:
  using result_type = uint64_t;
  explicit Random(uint64_t seed) : seed_(seed) {}
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()();
  /// Uniform in [0, 1).
  double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  /// Uniform in [0, bound), bound > 0. The bias is below bound / 2^64.
  uint64_t Below(uint64_t bound) { return (*this)() % bound; }
  /// Normal with mean 0 and deviation 1 (Box and Muller).
  double Normal();

 private:
  uint64_t seed_;
  uint64_t position_ = 0;
};

}  // namespace tessera
