// SPDX-License-Identifier: Apache-2.0
#include "kernels/catalog.h"

#include <gtest/gtest.h>

#include "kernels/pack.h"

namespace tessera::kernels {
namespace {

TEST(Catalog, EveryPackableFormatHasAReferenceAndNamesAreUnique) {
  for (const Entry& entry : Catalog()) {
    int same = 0;
    for (const Entry& other : Catalog()) same += other.name == entry.name;
    EXPECT_EQ(same, 1) << entry.name;
  }
  const RowKernels kernels = SelectRowKernels(Isa{});
  EXPECT_NE(kernels.attention, nullptr);
}

}  // namespace
}  // namespace tessera::kernels
