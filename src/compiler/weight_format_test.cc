// SPDX-License-Identifier: Apache-2.0
#include "compiler/weight_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/pack.h"

namespace tessera::compiler {
namespace {

using tensor::DType;

TEST(WeightFormat, KeepsWhatKernelsComputeWith) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
        DType::kQ5_1, DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    const auto format = ChooseMatrixFormat(dtype, 512, "none");
    ASSERT_TRUE(format.has_value()) << format.error().ToString();
    EXPECT_EQ(format->dtype, dtype) << tensor::Name(dtype);
    EXPECT_EQ(format->note, "");
  }
}

TEST(WeightFormat, ConvertsToTheNearestThatHoldsTheValuesAndSaysSo) {
  const auto target = [](DType dtype) {
    const auto format = ChooseMatrixFormat(dtype, 512, "none");
    return format.has_value() ? format->note + " to " + std::string(tensor::Name(format->dtype))
                              : format.error().ToString();
  };
  EXPECT_EQ(target(DType::kF64), "converted from F64 to F32");
  EXPECT_EQ(target(DType::kMXFP4), "converted from MXFP4 to Q8_0");
  EXPECT_EQ(target(DType::kIQ4_XS), "converted from IQ4_XS to Q8_0");
  EXPECT_EQ(target(DType::kQ3_K), "converted from Q3_K to Q6_K");
  EXPECT_EQ(target(DType::kQ2_K), "converted from Q2_K to F16");
}

TEST(WeightFormat, NarrowBFloat16KeepsFloatActivations) {
  EXPECT_EQ(ChooseMatrixFormat(DType::kBF16, 511, "none")->dtype, DType::kF32);
  EXPECT_EQ(ChooseMatrixFormat(DType::kBF16, 511, "none")->note, "converted from BF16");
  EXPECT_EQ(ChooseMatrixFormat(DType::kBF16, 512, "none")->dtype, DType::kBF16);
}

TEST(WeightFormat, RefusesTheRestByName) {
  for (const DType dtype : {DType::kI32, DType::kBool, DType::kQ8_1, DType::kQ8_K}) {
    const auto format = ChooseMatrixFormat(dtype, 512, "none");
    ASSERT_FALSE(format.has_value());
    EXPECT_EQ(format.error().code(), Code::kUnimplemented);
    EXPECT_THAT(format.error().ToString(), ::testing::HasSubstr(std::string(tensor::Name(dtype))));
  }
}

TEST(WeightFormat, QuantisesFloatSourcesOnlyWhereBlocksFit) {
  EXPECT_EQ(ChooseMatrixFormat(DType::kBF16, 64, "q8_0")->dtype, DType::kQ8_0);
  EXPECT_EQ(ChooseMatrixFormat(DType::kF32, 64, "q4_0")->dtype, DType::kQ4_0);
  EXPECT_EQ(ChooseMatrixFormat(DType::kF16, 40, "q8_0")->dtype, DType::kF16);
  EXPECT_EQ(ChooseMatrixFormat(DType::kQ4_1, 64, "q8_0")->dtype, DType::kQ4_1);
  for (const std::string_view name : Quantisations()) EXPECT_TRUE(CheckQuantize(name).ok()) << name;
  EXPECT_TRUE(CheckQuantize("none").ok());
  EXPECT_FALSE(CheckQuantize("q8").ok());
}

TEST(WeightFormat, SaysWhichItQuantised) {
  EXPECT_TRUE(ChooseMatrixFormat(DType::kBF16, 64, "q8_0")->is_quantised);
  EXPECT_FALSE(ChooseMatrixFormat(DType::kQ8_0, 64, "q8_0")->is_quantised);
  EXPECT_FALSE(ChooseMatrixFormat(DType::kIQ4_XS, 256, "q8_0")->is_quantised);
}

TEST(WeightFormat, SaysWhatRoundsAndHasAFormatThatDoesNot) {
  EXPECT_FALSE(ChooseMatrixFormat(DType::kBF16, 256, "q8_0")->is_exact);
  EXPECT_TRUE(ChooseMatrixFormat(DType::kBF16, 256, "none")->is_exact);
  EXPECT_TRUE(ChooseMatrixFormat(DType::kQ3_K, 256, "none")->is_exact);
  for (const DType dtype : {DType::kQ2_K, DType::kIQ4_XS}) {
    EXPECT_FALSE(ChooseMatrixFormat(dtype, 256, "none")->is_exact);
    const auto exact = ChooseMatrixFormat(dtype, 256, kExactFormats);
    EXPECT_TRUE(exact->is_exact);
    EXPECT_EQ(exact->dtype, DType::kF32);
  }
  EXPECT_EQ(ChooseMatrixFormat(DType::kBF16, 512, kExactFormats)->dtype, DType::kBF16);
  EXPECT_EQ(ChooseMatrixFormat(DType::kQ4_K, 512, kExactFormats)->dtype, DType::kQ4_K);
}

TEST(WeightFormat, StoresSensitiveMatricesFinerWhenQuantisingToFourBits) {
  using Kind = MatrixRole::Kind;
  const auto type = [](std::string_view quantize, const MatrixRole& role) {
    return QuantisedType(quantize, role, 512).value();
  };
  for (const std::string_view quantize : {"q4_k", "q4_0", "q4_1"}) {
    EXPECT_EQ(type(quantize, {.kind = Kind::kHead}), DType::kQ6_K) << quantize;
    EXPECT_EQ(type(quantize, {.kind = Kind::kTable}), DType::kQ6_K) << quantize;
  }
  std::string finer;
  for (int64_t layer = 0; layer < 16; ++layer) {
    const DType value = type("q4_k", {Kind::kValue, layer, 16});
    EXPECT_EQ(value, type("q4_k", {Kind::kDown, layer, 16}));
    EXPECT_EQ(type("q4_k", {Kind::kOther, layer, 16}), DType::kQ4_K);
    EXPECT_EQ(type("q4_0", {Kind::kValue, layer, 16}), DType::kQ4_0);
    finer += value == DType::kQ6_K ? '6' : '4';
  }
  EXPECT_EQ(finer, "6644644644644666");
}

TEST(WeightFormat, TakesBlocksOf32WhereSuperBlocksDoNotFit) {
  EXPECT_EQ(QuantisedType("q4_k", {}, 576), DType::kQ5_0);
  EXPECT_EQ(QuantisedType("q6_k", {}, 576), DType::kQ8_0);
  EXPECT_EQ(QuantisedType("q4_k", {.kind = MatrixRole::Kind::kHead}, 576), DType::kQ8_0);
  EXPECT_EQ(QuantisedType("q4_k", {}, 48), std::nullopt);
  EXPECT_EQ(QuantisedType("none", {}, 512), std::nullopt);
}

TEST(WeightFormat, TablesStayAsTheyAreUnlessQuantised) {
  EXPECT_EQ(ChooseTableFormat(DType::kBF16, 64, "none")->dtype, DType::kBF16);
  EXPECT_EQ(ChooseTableFormat(DType::kQ2_K, 256, "q4_k")->dtype, DType::kQ2_K);
  EXPECT_EQ(ChooseTableFormat(DType::kBF16, 256, "q4_k")->dtype, DType::kQ6_K);
  EXPECT_FALSE(ChooseTableFormat(DType::kQ8_K, 256, "none").has_value());
}

}  // namespace
}  // namespace tessera::compiler
