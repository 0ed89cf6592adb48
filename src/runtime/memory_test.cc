// SPDX-License-Identifier: Apache-2.0
//
// Arena, pages and rope tables.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "runtime/arena.h"
#include "runtime/kv_memory.h"
#include "runtime/limits.h"
#include "runtime/rope_cache.h"

namespace tessera::runtime {
namespace {

TEST(Arena, SlotsAreAlignedApartAndZero) {
  Arena arena;
  const Arena::Slot a = arena.Add(1), b = arena.Add(100), c = arena.Add(0), d = arena.Add(64);
  ASSERT_TRUE(arena.Commit().ok());
  EXPECT_EQ(arena.bytes(), 64U + 128U + 64U);
  for (const Arena::Slot slot : {a, b, c, d})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.At(slot)) % 64, 0U);
  EXPECT_EQ(arena.At(b) - arena.At(a), 64);
  EXPECT_EQ(*arena.As<uint64_t>(d), 0U);
}

TEST(Mapping, RefusesWhatTheAddressSpaceLacks) {
  const auto mapping = Mapping::Reserve(uint64_t{1} << 60, false);
  ASSERT_FALSE(mapping.has_value());
  EXPECT_EQ(mapping.error().code(), Code::kResourceExhausted);
}

TEST(KvMemory, CopiesWholePages) {
  const bundle::Dims dims = {64, 100, 2, 4, 2, 16, 128, 32};
  for (const auto type : {kernels::KvType::kF16, kernels::KvType::kInt8}) {
    auto pool = KvMemory::Make(dims, 3, type);
    ASSERT_TRUE(pool.has_value()) << pool.error().ToString();
    const int64_t bytes = pool->layout().PageBytes();
    for (int64_t i = 0; i < bytes; ++i)
      pool->data()[bytes + i] = static_cast<std::byte>((i * 31 + 5) % 251);
    pool->Copy(1, 2);
    EXPECT_EQ(
        std::memcmp(pool->data() + bytes, pool->data() + 2 * bytes, static_cast<size_t>(bytes)), 0);
    EXPECT_EQ(pool->data()[0], std::byte{0});
  }
}

/// Bytes of the process's resident set; -1 when the system does not say.
int64_t Resident() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = -1;
  file >> total >> resident;
  return resident < 0 ? -1 : resident * ::sysconf(_SC_PAGESIZE);
}

TEST(KvMemory, BackedPagesTakeMemoryAndKeepWhatTheyHold) {
  const bundle::Dims dims = {64, 100, 32, 8, 8, 128, 2048, 128};  // Pages of 16 MiB.
  auto pool = KvMemory::Make(dims, 4);
  ASSERT_TRUE(pool.has_value());
  const int64_t bytes = pool->layout().PageBytes(), before = Resident();
  pool->data()[bytes + 5] = std::byte{7};
  pool->Back(1);
  pool->Back(3);
  EXPECT_EQ(pool->data()[bytes + 5], std::byte{7});
#ifdef MADV_POPULATE_WRITE
  EXPECT_GE(Resident() - before, 2 * bytes - (1 << 20));
  EXPECT_LT(Resident() - before, 3 * bytes);
#endif
}

TEST(KvMemory, AnInt8PositionTakesAByteAnElementAndTwoScalesAHead) {
  const bundle::Dims dims = {64, 100, 2, 4, 2, 16, 128, 32};
  const auto half = KvMemory::Make(dims, 1), int8 = KvMemory::Make(dims, 1, kernels::KvType::kInt8);
  ASSERT_TRUE(half.has_value() && int8.has_value());
  EXPECT_EQ(half->layout().PageBytes(), 2 * 2 * 32 * 2 * 16 * 2);
  EXPECT_EQ(int8->layout().PageBytes(), 2 * 2 * 32 * 2 * (16 + 4));
}

TEST(KvMemory, PagesHaveALimit) {
  const bundle::Dims dims = {64, 100, 1, 1, 1, 8, 128, 16};
  EXPECT_FALSE(KvMemory::Make(dims, 0).has_value());
  EXPECT_FALSE(KvMemory::Make(dims, kMaxPages + 1).has_value());
}

TEST(KvMemory, PlaneViewNamesTheSameElements) {
  const bundle::Dims dims = {64, 100, 3, 4, 2, 16, 128, 32};
  auto pool = KvMemory::Make(dims, 1, kernels::KvType::kInt8);
  ASSERT_TRUE(pool.has_value());
  const kernels::KvLayout planes = pool->PlaneLayout();
  EXPECT_EQ(planes.PageBytes(), pool->layout().PageBytes());
  for (int64_t layer = 0; layer < 3; ++layer) {
    for (int64_t head = 0; head < 2; ++head) {
      EXPECT_EQ(planes.KElement(pool->Plane(layer, head), 0, 17, 3),
                pool->layout().KElement(layer, head, 17, 3));
      EXPECT_EQ(planes.VElement(pool->Plane(layer, head), 0, 17, 3),
                pool->layout().VElement(layer, head, 17, 3));
      EXPECT_EQ(planes.VScale(pool->Plane(layer, head), 0, 17),
                pool->layout().VScale(layer, head, 17));
    }
  }
}

TEST(RopeCache, HoldsCosineAndSineRoundedOnce) {
  const bundle::Rope rope = {4, {1.0, 0.01}, 1.5};
  auto cache = RopeCache::Make(rope, 1000);
  ASSERT_TRUE(cache.has_value());
  const float* table = cache->table();
  cache->Extend(1);
  cache->Extend(700);
  EXPECT_EQ(cache->table(), table);
  for (const int64_t position : {0, 1, 255, 256, 699}) {
    for (int64_t pair = 0; pair < 2; ++pair) {
      const double angle =
          static_cast<double>(position) * rope.inverse_frequency[static_cast<size_t>(pair)];
      const float* entry = table + (position * 2 + pair) * 2;
      EXPECT_EQ(entry[0], static_cast<float>(1.5 * std::cos(angle))) << position;
      EXPECT_EQ(entry[1], static_cast<float>(1.5 * std::sin(angle))) << position;
    }
  }
  cache->Extend(1000);
}

}  // namespace
}  // namespace tessera::runtime
