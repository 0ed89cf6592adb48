// SPDX-License-Identifier: Apache-2.0
#include "bundle/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::bundle {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kOne = "0123456789abcdef", kOther = "0123456789abcdee";

/// Archives of these names and identities ("": none), opened together.
formats::ParameterIndex Archives(
    const std::vector<std::pair<std::string, std::string_view>>& files) {
  formats::ParameterIndex all;
  for (const auto& [name, identity] : files) {
    formats::ParameterIndex index;
    formats::SourceFile file;
    file.path = "/b/" + name;
    const uint32_t at = index.AddFile(std::move(file));
    if (!identity.empty()) {
      formats::ParameterEntry entry;
      entry.name = IdentityEntry(name);
      entry.file = at;
      entry.splat = *IdentitySplat(identity);
      entry.bytes = 8;
      entry.is_tensor = false;
      EXPECT_TRUE(index.Add(std::move(entry)).ok());
    }
    EXPECT_TRUE(all.Join(std::move(index)).ok());
  }
  return all;
}

TEST(Identity, EveryFileOfABundleHasItsOwnEntry) {
  EXPECT_EQ(IdentityEntry("model.irpa"), "tessera.identity");
  EXPECT_EQ(IdentityEntry("model.rank3.irpa"), "tessera.identity.rank3");
}

TEST(Identity, FilesOfOneCompilationPass) {
  const auto index = Archives({{"model.irpa", kOne}, {"model.rank0.irpa", kOne}});
  EXPECT_TRUE(CheckIdentity(index, kOne).ok());
  EXPECT_TRUE(CheckIdentity(index, "").ok());
}

TEST(Identity, AFileOfAnotherCompilationIsNamed) {
  const auto index =
      Archives({{"model.irpa", kOne}, {"model.rank0.irpa", kOne}, {"model.rank1.irpa", kOther}});
  for (const std::string_view expected : {kOne, std::string_view()}) {
    const Status status = CheckIdentity(index, expected);
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.ToString(), HasSubstr("model.rank1.irpa is of another compilation"));
  }
}

TEST(Identity, AllFilesOfAnotherCompilationThanTheManifestsAreNoticed) {
  const auto index = Archives({{"model.irpa", kOther}, {"model.rank0.irpa", kOther}});
  EXPECT_EQ(CheckIdentity(index, kOne).code(), Code::kDataLoss);
  EXPECT_TRUE(CheckIdentity(index, "").ok());
}

TEST(Identity, FilesFromBeforeThereWereIdentitiesPassTogetherOnly) {
  EXPECT_TRUE(CheckIdentity(Archives({{"model.irpa", ""}, {"model.rank0.irpa", ""}}), kOne).ok());
  EXPECT_EQ(CheckIdentity(Archives({{"model.irpa", kOne}, {"model.rank0.irpa", ""}}), "").code(),
            Code::kDataLoss);
}

TEST(Identity, AnIdentityIsSixteenHexDigits) {
  for (const std::string_view bad :
       {"", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdeg"})
    EXPECT_FALSE(IdentitySplat(bad).has_value()) << bad;
}

}  // namespace
}  // namespace tessera::bundle
