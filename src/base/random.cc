// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <sys/random.h>

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tessera {
namespace {

// Multipliers and Weyl constants of the paper's Philox4x32.
constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

constexpr uint32_t Low(uint64_t value) {
  return static_cast<uint32_t>(value);
}
constexpr uint32_t High(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * counter[0];
    const uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1),
               High(product0) ^ counter[3] ^ key[1], Low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double UniformAt(uint64_t seed, uint64_t stream, uint64_t position) {
  const auto block = Philox4x32({Low(position), High(position), Low(stream), High(stream)},
                                {Low(seed), High(seed)});
  const uint64_t bits = (static_cast<uint64_t>(block[0]) << 32) | block[1];
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

uint64_t SystemRandom64() {
  uint64_t value = 0;
  TESSERA_CHECK(::getrandom(&value, sizeof(value), 0) == sizeof(value));
  return value;
}

uint64_t Random::operator()() {
  const auto block = Philox4x32({Low(position_), High(position_), 0, 0}, {Low(seed_), High(seed_)});
  ++position_;
  return (static_cast<uint64_t>(block[0]) << 32) | block[1];
}

double Random::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * Uniform());
}

}  // namespace tessera
