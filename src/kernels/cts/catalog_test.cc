// SPDX-License-Identifier: Apache-2.0
#include "kernels/catalog.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/pack.h"
#include "kernels/x86/avx512.h"

namespace tessera::kernels {
namespace {

using tensor::DType;

TEST(Catalog, NamesAreUniqueAndEndWithTheIsa) {
  std::set<std::string_view> names;
  for (const Entry& entry : Catalog()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(entry.name.ends_with(Name(entry.isa))) << entry.name;
    EXPECT_TRUE(entry.name.starts_with(Name(entry.op))) << entry.name;
    EXPECT_EQ(entry.weights.has_value(), entry.op == Op::kMatmul) << entry.name;
  }
}

TEST(Catalog, EveryOperationAndFormatEndsWithItsReference) {
  for (const Entry& entry : Catalog()) {
    const Entry* plain = Find(entry.op, entry.weights, entry.rows, Isa{});
    ASSERT_NE(plain, nullptr) << entry.name;
    EXPECT_EQ(plain->isa, KernelIsa::kRef);
    EXPECT_GE(plain, &entry) << entry.name << " stands behind its reference";
    EXPECT_EQ(plain->fn.index(), entry.fn.index());
  }
  for (int i = 0; i <= static_cast<int>(DType::kMXFP4); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(FindMatmul(dtype, 1, Isa{}) != nullptr, CanPack(dtype, 256)) << tensor::Name(dtype);
  }
}

TEST(Catalog, SelectionPrefersTheBestIsaOfTheMachineAndTheRowsClass) {
  Isa avx2;
  avx2.avx2 = true;
  EXPECT_EQ(FindMatmul(DType::kQ4_1, 1, avx2)->name, "matmul.q4_1.p8.gemv.avx2");
  EXPECT_EQ(FindMatmul(DType::kQ4_1, 2, avx2)->name, "matmul.q4_1.p8.gemm.avx2");
  EXPECT_EQ(FindMatmul(DType::kQ4_1, 2, Isa{})->name, "matmul.q4_1.p8.ref");
  EXPECT_EQ(FindMatmul(DType::kIQ2_S, 2, avx2), nullptr);
}

TEST(Catalog, DotProductsOfBFloat16RunWhereTheCpuKeepsTheContract) {
  const Isa machine = ReadIsa();
  Isa without = machine;
  without.avx512_bf16 = false;
  EXPECT_FALSE(Runs(KernelIsa::kAvx512Bf16, without));
  const Entry* best = FindMatmul(DType::kBF16, 1, machine);
  if (!machine.avx512_bf16) {
    std::printf("skipped: this machine has no AVX512_BF16\n");
    return;
  }
  EXPECT_EQ(Runs(KernelIsa::kAvx512Bf16, machine), avx512::DotKeepsContract());
  EXPECT_EQ(best->isa == KernelIsa::kAvx512Bf16, avx512::DotKeepsContract());
}

TEST(Catalog, NamesResolveOnlyWhereTheMachineCanRunThem) {
  Isa avx2;
  avx2.avx2 = true;
  EXPECT_NE(FindByName("attention.avx2", avx2), nullptr);
  EXPECT_EQ(FindByName("attention.avx2", Isa{}), nullptr);
  EXPECT_EQ(FindByName("attention.none", avx2), nullptr);
  EXPECT_NE(FindByName("attention.ref", Isa{}), nullptr);
}

TEST(Catalog, EmptyCellsAreNamed) {
  const std::vector<std::string> cells = EmptyCells();
  const std::set<std::string> set(cells.begin(), cells.end());
  EXPECT_EQ(set.size(), cells.size());
  EXPECT_TRUE(set.contains("matmul.q4_1.p8.amx_int8"));
  EXPECT_TRUE(set.contains("attention.neon"));
  EXPECT_FALSE(set.contains("attention.avx2"));
  EXPECT_FALSE(set.contains("matmul.f16.p8.avx512_vnni"));  // Not for float activations.
  EXPECT_FALSE(set.contains("matmul.q8_0.p8.avx512_bf16"));
  EXPECT_FALSE(set.contains("matmul.bf16.p8.avx512_bf16"));
  for (const Entry& entry : Catalog()) {
    EXPECT_FALSE(set.contains(std::string(entry.name))) << entry.name;
  }
}

}  // namespace
}  // namespace tessera::kernels
