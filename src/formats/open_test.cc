// SPDX-License-Identifier: Apache-2.0
#include "formats/open.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/fixtures.h"

namespace tessera::formats {
namespace {

using testing::Shared;
using testing::TempDir;

void Copy(std::string_view from, const std::filesystem::path& to) {
  std::filesystem::copy_file(Shared(from), to);
}

TEST(Open, FormatIsToldByTheFirstBytes) {
  const auto format = [](std::string_view bytes, const char* path) {
    return DetectFormat(AsBytes(bytes), path);
  };
  EXPECT_EQ(format("GGUF", "x").value(), Format::kGguf);
  EXPECT_EQ(format("IRPA", "x.gguf").value(), Format::kIrpa);
  EXPECT_EQ(format(std::string_view("\2\0\0\0\0\0\0\0{}", 10), "x.gguf").value(),
            Format::kSafetensors);
  // Where the bytes do not tell, the name decides which parser explains what is wrong.
  EXPECT_EQ(format("", "x.GGUF").value(), Format::kGguf);
  EXPECT_EQ(format("junk", "x.safetensors").value(), Format::kSafetensors);
  const auto unknown = format("junk", "dir/x.bin");
  EXPECT_EQ(unknown.error().code(), Code::kInvalidArgument);
  EXPECT_NE(unknown.error().ToString().find("dir/x.bin"), std::string::npos);
}

TEST(Open, AFolderGivesItsSingleParameterFile) {
  TempDir temp;
  EXPECT_EQ(StatusOf(Open(temp.path())).code(), Code::kNotFound);
  Copy("fixtures/gguf/valid/version_2.gguf", temp.path() / "a.gguf");
  Copy("samples/shark/irpa/cli_mixed.irpa", temp.path() / "b.irpa");
  const auto index = Open(temp.path());
  ASSERT_TRUE(index.has_value()) << index.error().ToString();
  EXPECT_EQ(index->files()[0].format, Format::kGguf);  // Preferred over IRPA.
  Copy("fixtures/gguf/valid/version_2.gguf", temp.path() / "c.gguf");
  const Status two = StatusOf(Open(temp.path()));
  EXPECT_EQ(two.code(), Code::kInvalidArgument);
  EXPECT_NE(two.ToString().find("a.gguf, c.gguf"), std::string::npos) << two.ToString();
}

TEST(Open, RankFilesDoNotCompeteInAFolder) {
  TempDir temp;
  for (const char* name : {"tiny2_tp2.irpa", "tiny2_tp2.rank0.irpa", "tiny2_tp2.rank1.irpa"})
    Copy(std::string("samples/shark/irpa_sharktank/") + name, temp.path() / name);
  const auto index = Open(temp.path(), /*with_ranks=*/true);
  ASSERT_TRUE(index.has_value()) << index.error().ToString();
  EXPECT_EQ(index->files().size(), 3u);
}

TEST(Open, MissingAndUnreadableFilesAreNamed) {
  TempDir temp;
  const auto path = temp.path() / "none.gguf";
  const Status missing = StatusOf(Open(path));
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.ToString().find("none.gguf"), std::string::npos);
}

TEST(OpenAll, JoinsFilesAndRefusesDuplicateNames) {
  const std::vector<std::filesystem::path> paths = {Shared("samples/shark/irpa/cli_data_zero.irpa"),
                                                    Shared("samples/shark/irpa/in.gguf"),
                                                    Shared("samples/shark/irpa/in.safetensors")};
  const auto index = OpenAll(paths);
  ASSERT_TRUE(index.has_value()) << index.error().ToString();
  ASSERT_EQ(index->files().size(), 3u);
  EXPECT_EQ(index->Find("g.f16")->file, 1u);
  EXPECT_EQ(index->View(*index->Find("st.i64")).bytes.size(), 16u);
  const std::vector<std::filesystem::path> twice = {paths[0], paths[0]};
  const Status status = StatusOf(OpenAll(twice));
  EXPECT_EQ(status.code(), Code::kAlreadyExists);
  EXPECT_NE(status.ToString().find("key0"), std::string::npos);
}

}  // namespace
}  // namespace tessera::formats
