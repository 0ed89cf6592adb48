// SPDX-License-Identifier: Apache-2.0
#include "bundle/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "base/file.h"
#include "base/hash.h"
#include "bundle/manifest.h"
#include "support/fixtures.h"

namespace tessera::bundle {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class ExportTest : public ::testing::Test {
 protected:
  /// A bundle of two files; `text` is what its parameters say.
  fs::path MakeBundle(const std::string& name, const std::string& text) {
    const fs::path folder = dir_.path() / name;
    fs::create_directories(folder);
    Manifest manifest;
    manifest.tessera_version = "0.1";
    manifest.model = "tiny";
    manifest.key = "0123456789abcdef";
    manifest.target = "cpu";
    manifest.isa = "x86-64-v3";
    manifest.quantization = "source";
    manifest.page = {"[layer]", "F16", 32, 1024};
    for (const auto& [file, contents] :
         {std::pair{std::string("config.json"), std::string("{}")}, {"model.irpa", text}}) {
      EXPECT_TRUE(WriteFileAtomic(folder / file, contents).ok());
      manifest.files.push_back({file, contents.size(), Sha256Hex(AsBytes(contents))});
    }
    EXPECT_TRUE(WriteFileAtomic(folder / "manifest.json", WriteManifest(manifest)).ok());
    return folder;
  }

  /// What the folder holds, to see that nothing is left behind.
  std::vector<std::string> Names(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
    return names;
  }

  testing::TempDir dir_;
};

void ExpectIsBundle(const fs::path& folder, const std::string& text) {
  const auto manifest = LoadManifest(folder);
  ASSERT_TRUE(manifest.has_value()) << manifest.error().ToString();
  EXPECT_TRUE(VerifyFiles(folder, *manifest, Check::kEverything).ok());
  EXPECT_EQ(testing::ReadAll(folder / "model.irpa"), text);
}

TEST_F(ExportTest, CopiesToANewPlaceAndLeavesNothingElse) {
  const fs::path bundle = MakeBundle("bundle", "new");
  ASSERT_TRUE(Export(bundle, dir_.path() / "deep/er/out/").ok());
  ExpectIsBundle(dir_.path() / "deep/er/out", "new");
  ExpectIsBundle(bundle, "new");
  EXPECT_THAT(Names(dir_.path() / "deep/er"), UnorderedElementsAre("out"));
}

TEST_F(ExportTest, FillsAnEmptyFolderAndReplacesAnOlderBundle) {
  const fs::path bundle = MakeBundle("bundle", "new");
  fs::create_directory(dir_.path() / "empty");
  ASSERT_TRUE(Export(bundle, dir_.path() / "empty").ok());
  ExpectIsBundle(dir_.path() / "empty", "new");
  MakeBundle("old", "old");
  const Status status = Export(bundle, dir_.path() / "old");
  ASSERT_TRUE(status.ok()) << status.ToString();
  ExpectIsBundle(dir_.path() / "old", "new");
  EXPECT_THAT(Names(dir_.path()), UnorderedElementsAre("bundle", "empty", "old"));
}

TEST_F(ExportTest, NeverTouchesAFolderThatIsNoBundle) {
  const fs::path bundle = MakeBundle("bundle", "new");
  const fs::path foreign = dir_.path() / "extension";
  fs::create_directory(foreign);
  ASSERT_TRUE(WriteFileAtomic(foreign / "manifest.json", R"({"manifest_version": 3})").ok());
  ASSERT_TRUE(WriteFileAtomic(foreign / "thesis.tex", "years of work").ok());
  const Status status = Export(bundle, foreign);
  EXPECT_EQ(status.code(), Code::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("extension is there and is no bundle"));
  EXPECT_THAT(Names(foreign), UnorderedElementsAre("manifest.json", "thesis.tex"));
  EXPECT_EQ(testing::ReadAll(foreign / "thesis.tex"), "years of work");
  EXPECT_THAT(Names(dir_.path()), UnorderedElementsAre("bundle", "extension"));
}

TEST_F(ExportTest, NeverRemovesWhatLiesBesideABundlesFiles) {
  const fs::path bundle = MakeBundle("bundle", "new");
  const fs::path old = MakeBundle("old", "old");
  ASSERT_TRUE(WriteFileAtomic(old / "notes.txt", "mine").ok());
  const Status status = Export(bundle, old);
  EXPECT_EQ(status.code(), Code::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("holds notes.txt besides a bundle"));
  ExpectIsBundle(old, "old");
  EXPECT_EQ(testing::ReadAll(old / "notes.txt"), "mine");
}

TEST_F(ExportTest, RefusesTheBundleItselfHoweverItIsSpelt) {
  const fs::path bundle = MakeBundle("bundle", "new");
  fs::create_directory_symlink(bundle, dir_.path() / "link");
  for (const fs::path& target :
       {bundle, bundle / ".", bundle / "../bundle/", dir_.path() / "link", bundle / "inside"}) {
    EXPECT_EQ(Export(bundle, target).code(), Code::kInvalidArgument) << target;
    ExpectIsBundle(bundle, "new");
    EXPECT_THAT(Names(bundle), UnorderedElementsAre("manifest.json", "config.json", "model.irpa"));
  }
}

TEST_F(ExportTest, AWriteThatFailsHalfwayLeavesTheOldBundleAndNoTrace) {
  const fs::path bundle = MakeBundle("bundle", std::string(256 << 10, 'x'));
  const fs::path old = MakeBundle("old", "old");
  // The system refuses bytes beyond the limit, as it does on a full disk.
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit previous{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &previous), 0);
  const rlimit small{64 << 10, previous.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = Export(bundle, old);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &previous), 0);
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.ToString(), HasSubstr("model.irpa"));
  ExpectIsBundle(old, "old");
  EXPECT_THAT(Names(dir_.path()), UnorderedElementsAre("bundle", "old"));
}

TEST_F(ExportTest, ADamagedBundleIsNotExported) {
  const fs::path bundle = MakeBundle("bundle", "new");
  const fs::path old = MakeBundle("old", "old");
  fs::remove(bundle / "model.irpa");
  EXPECT_EQ(Export(bundle, old).code(), Code::kDataLoss);
  ExpectIsBundle(old, "old");
  EXPECT_THAT(Names(dir_.path()), UnorderedElementsAre("bundle", "old"));
}

TEST_F(ExportTest, AFileInTheWayIsNamedAndKept) {
  const fs::path bundle = MakeBundle("bundle", "new");
  ASSERT_TRUE(WriteFileAtomic(dir_.path() / "file", "mine").ok());
  EXPECT_EQ(Export(bundle, dir_.path() / "file").code(), Code::kAlreadyExists);
  // As the parent of the target: no folder can be made there.
  const Status status = Export(bundle, dir_.path() / "file/out");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("file"));
  EXPECT_EQ(testing::ReadAll(dir_.path() / "file"), "mine");
  EXPECT_THAT(Names(dir_.path()), UnorderedElementsAre("bundle", "file"));
}

}  // namespace
}  // namespace tessera::bundle
