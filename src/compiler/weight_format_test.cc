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
  EXPECT_TRUE(CheckQuantize("q4_1").ok());
  EXPECT_FALSE(CheckQuantize("q8").ok());
}

}  // namespace
}  // namespace tessera::compiler
