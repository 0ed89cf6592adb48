// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <string>

#include "tensor/known_dtypes.h"

namespace tessera::tensor {
namespace {

TEST(DType, EveryNameFindsItsTypeInAnyCase) {
  for (const DTypeInfo& info : AllDTypes()) {
    EXPECT_EQ(FindByName(info.name), info.dtype) << info.name;
    std::string lower(info.name);
    for (char& c : lower) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(FindByName(lower), info.dtype) << lower;
  }
  EXPECT_FALSE(FindByName("").has_value());
  EXPECT_FALSE(FindByName("F33").has_value());
}

TEST(DType, NamesAndIdsAreUnique) {
  std::set<std::string_view> names;
  std::set<std::string_view> torch;
  std::set<int32_t> ids;
  for (const DTypeInfo& info : AllDTypes()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    if (!info.torch.empty()) {
      EXPECT_TRUE(torch.insert(info.torch).second) << info.torch;
    }
    if (info.gguf_id >= 0) {
      EXPECT_TRUE(ids.insert(info.gguf_id).second) << info.name;
    }
  }
}

TEST(DType, MessagesNameExactlyWhatIsKnown) {
  std::set<uint32_t> listed;
  std::istringstream ids(KnownGgufIds());
  for (std::string range; std::getline(ids, range, ',');) {
    uint32_t first = 0;
    uint32_t last = 0;
    const int fields = std::sscanf(range.c_str(), "%u-%u", &first, &last);
    ASSERT_GE(fields, 1) << range;
    for (uint32_t id = first; id <= (fields == 2 ? last : first); ++id) listed.insert(id);
  }
  for (uint32_t id = 0; id < 100; ++id)
    EXPECT_EQ(listed.contains(id), FindByGgufId(id).has_value()) << id;
  std::istringstream names(KnownSafetensorsNames());
  for (std::string name; std::getline(names >> std::ws, name, ',');)
    EXPECT_TRUE(FindBySafetensorsName(name).has_value()) << name;
  EXPECT_TRUE(KnownTorchNames().find("bfloat16, bool, ") != std::string::npos) << KnownTorchNames();
}

TEST(DType, IdsThatGgmlRemovedAreUnknown) {
  for (const uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 999u, ~0u})
    EXPECT_FALSE(FindByGgufId(id).has_value()) << id;
  EXPECT_EQ(FindByGgufId(0), DType::kF32);
  EXPECT_EQ(FindByGgufId(39), DType::kMXFP4);
}

TEST(DType, SafetensorsAndTorchNamesAreExact) {
  EXPECT_EQ(FindBySafetensorsName("BF16"), DType::kBF16);
  EXPECT_EQ(FindBySafetensorsName("F8_E4M3"), DType::kF8E4M3);
  EXPECT_FALSE(FindBySafetensorsName("bf16").has_value());
  EXPECT_FALSE(FindBySafetensorsName("").has_value());
  EXPECT_EQ(FindByTorchName("float8_e4m3fnuz"), DType::kF8E4M3Fnuz);
  EXPECT_EQ(FindByTorchName("bool"), DType::kBool);
  EXPECT_FALSE(FindByTorchName("").has_value());
}

TEST(DType, RowBytesChecksTheBlockAndOverflow) {
  EXPECT_EQ(RowBytes(DType::kQ4_1, 64).value(), 40u);
  EXPECT_EQ(RowBytes(DType::kF32, 0).value(), 0u);
  EXPECT_EQ(RowBytes(DType::kQ8_0, 33).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(RowBytes(DType::kF64, (1ull << 61) - 1).value(), (1ull << 61) * 8 - 8);
  EXPECT_EQ(RowBytes(DType::kF64, 1ull << 61).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::tensor
