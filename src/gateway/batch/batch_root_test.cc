// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_root.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;
using testing::ReadAll;
using testing::TempDir;

class BatchRootTest : public ::testing::Test {
 protected:
  BatchRootTest() {
    fs::create_directories(dir_.path() / "root" / "sub");
    Put("root/in.json", "inside");
    Put("root/sub/deep.json", "deep");
    Put("outside.json", "secret");
    fs::create_symlink(dir_.path() / "outside.json", dir_.path() / "root" / "link.json");
    fs::create_symlink(dir_.path(), dir_.path() / "root" / "up");
    fs::create_symlink(dir_.path() / "root", dir_.path() / "alias");
    root_ = *BatchRoot::Make(dir_.path() / "alias");
  }
  void Put(const std::string& name, std::string_view text) const {
    std::ofstream(dir_.path() / name) << text;
  }
  std::string Path(const std::string& name) const { return (dir_.path() / name).string(); }
  std::string Read(const std::string& path) const {
    const auto bytes = root_.Read(path, 100);
    return bytes.has_value() ? *bytes : std::string(CodeName(bytes.error().code()));
  }
  Status Write(const std::string& path, std::string_view text) const {
    return root_.WriteFile(path, [&](const BatchRoot::Write& write) { return write(text); });
  }

  const TempDir dir_;
  BatchRoot root_;
};

TEST_F(BatchRootTest, PathsBelowItAreRead) {
  EXPECT_EQ(Read("in.json"), "inside");
  EXPECT_EQ(Read("sub/deep.json"), "deep");
  EXPECT_EQ(Read("sub//deep.json"), "deep");
  EXPECT_EQ(Read(Path("root/in.json")), "inside") << "where it really is";
  EXPECT_EQ(Read(Path("alias/in.json")), "inside") << "as it was given";
}

TEST_F(BatchRootTest, NothingElseIs) {
  for (const std::string& path :
       {std::string("../outside.json"), std::string("sub/../in.json"), std::string("./in.json"),
        Path("outside.json"), Path("root/../outside.json"), std::string("/etc/passwd"),
        std::string("link.json"), std::string("up/outside.json"), Path("root"), std::string("sub/"),
        Path("rootless/in.json"), std::string("in.json/x")})
    EXPECT_EQ(Read(path), "PERMISSION_DENIED") << path;
  EXPECT_EQ(Read(""), "INVALID_ARGUMENT");
  EXPECT_EQ(Read(std::string("in.json\0x", 9)), "INVALID_ARGUMENT");
  EXPECT_EQ(Read("absent.json"), "NOT_FOUND");
  EXPECT_EQ(Read("sub"), "INVALID_ARGUMENT") << "a folder";
  ASSERT_EQ(mkfifo(Path("root/pipe").c_str(), 0600), 0);
  EXPECT_EQ(Read("pipe"), "INVALID_ARGUMENT") << "and it is not waited for";
}

TEST_F(BatchRootTest, InputsAreLimited) {
  Put("root/n", std::string(100, 'x'));
  Put("root/more", std::string(101, 'x'));
  EXPECT_EQ(Read("n").size(), 100u);
  EXPECT_EQ(Read("more"), "RESOURCE_EXHAUSTED");
}

TEST_F(BatchRootTest, OutputsReplaceWhatWasThere) {
  EXPECT_TRUE(root_.CheckOutput("new/folder/out.json").ok());
  ASSERT_TRUE(Write("new/folder/out.json", "one").ok());
  ASSERT_TRUE(Write(Path("alias/new/folder/out.json"), std::string(1u << 20, 'x')).ok());
  EXPECT_EQ(ReadAll(dir_.path() / "root/new/folder/out.json").size(), 1u << 20);
  ASSERT_TRUE(Write("link.json", "instead of the link").ok());
  EXPECT_EQ(ReadAll(dir_.path() / "outside.json"), "secret");
}

TEST_F(BatchRootTest, OutputsStayInside) {
  for (const std::string& path :
       {std::string("../out.json"), Path("out.json"), std::string("up/out.json"), Path("root")}) {
    EXPECT_EQ(Write(path, "x").code(), Code::kPermissionDenied) << path;
    EXPECT_EQ(root_.CheckOutput(path).code(), Code::kPermissionDenied) << path;
  }
  EXPECT_FALSE(root_.CheckOutput("sub").ok()) << "a folder";
  EXPECT_FALSE(root_.CheckOutput("link.json").ok());
  EXPECT_FALSE(fs::exists(dir_.path() / "out.json"));
}

TEST_F(BatchRootTest, AnOutputThatFailsLeavesNothing) {
  Put("root/sub/out.json", "before");
  const Status failed = root_.WriteFile("sub/out.json", [](const BatchRoot::Write& write) {
    (void)write("half");
    return DataLoss("no more");
  });
  EXPECT_EQ(failed.code(), Code::kDataLoss);
  EXPECT_EQ(ReadAll(dir_.path() / "root/sub/out.json"), "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path() / "root/sub"), {}), 2);
}

TEST(BatchRoot, WithoutAFolderNoPathIsTaken) {
  EXPECT_EQ(StatusOf(BatchRoot().Read("in.json", 1)).code(), Code::kPermissionDenied);
  EXPECT_EQ(StatusOf(BatchRoot::Make({})->Read("/etc/passwd", 1)).code(), Code::kPermissionDenied);
  EXPECT_FALSE(BatchRoot::Make("/nowhere/at/all").has_value());
}

}  // namespace
}  // namespace tessera::gateway
