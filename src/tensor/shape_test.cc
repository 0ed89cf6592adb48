// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <gtest/gtest.h>

namespace tessera::tensor {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Shape, ScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.rows(), 1);
  EXPECT_EQ(scalar.columns(), 1);
  EXPECT_EQ(scalar.Elements().value(), 1);
  EXPECT_EQ(scalar.ToString(), "[]");
}

TEST(Shape, RowsTimesColumnsAreTheElements) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_EQ(shape.columns(), 5);
  EXPECT_EQ(shape.elements(), 30);
  EXPECT_EQ(shape.ToString(), "[2,3,5]");
}

TEST(Shape, ElementsRefusesWhatDoesNotFit) {
  EXPECT_EQ(Shape({kMax, 1}).Elements().value(), kMax);
  EXPECT_EQ(Shape({1ll << 62, 2}).Elements().error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Shape({-1}).Elements().error().code(), Code::kInvalidArgument);
  EXPECT_EQ(Shape({0, 4}).Elements().value(), 0);
  // The outer product must fit even when the tensor is empty.
  EXPECT_EQ(Shape({1ll << 62, 4, 0}).Elements().error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::tensor
