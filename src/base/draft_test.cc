// SPDX-License-Identifier: Apache-2.0
#include "base/draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/fixtures.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class DraftTest : public ::testing::Test {
 protected:
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      names.push_back(entry.path().filename().string());
    return names;
  }
  /// How a process ends that does `work`, and no destructor after it.
  int InAProcess(const std::function<void()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      work();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  fs::path Made(const fs::path& folder) {
    fs::create_directory(folder);
    return folder;
  }
  void Fill(const fs::path& folder) {
    fs::create_directory(folder / "inner");
    EXPECT_TRUE(WriteFileAtomic(folder / "inner/file", "text").ok());
    EXPECT_TRUE(WriteFileAtomic(folder / "file", "text").ok());
  }

  testing::TempDir dir_;
  fs::path target_ = dir_.path() / "target";
};

TEST_F(DraftTest, IsHiddenUntilItMovesAndGoneIfItDoesNot) {
  {
    auto draft = Draft::Folder(target_);
    ASSERT_TRUE(draft.has_value()) << draft.error().ToString();
    Fill(draft->path());
    ASSERT_EQ(Names().size(), 1u);
    EXPECT_TRUE(Names().front().starts_with(".target.draft."));
    EXPECT_EQ(draft->path().parent_path(), dir_.path());
  }
  EXPECT_THAT(Names(), IsEmpty());
  auto draft = Draft::File(target_);
  ASSERT_TRUE(draft.has_value());
  ASSERT_TRUE(draft->MoveTo(target_).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("target"));
}

TEST_F(DraftTest, ReplacesAFolderAndRemovesTheOldOne) {
  fs::create_directory(target_);
  Fill(target_);
  {
    auto draft = Draft::Folder(target_);
    ASSERT_TRUE(draft.has_value());
    ASSERT_TRUE(WriteFileAtomic(draft->path() / "new", "text").ok());
    const Status status = draft->MoveTo(target_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("target"));
  EXPECT_TRUE(fs::exists(target_ / "new"));
  EXPECT_FALSE(fs::exists(target_ / "file"));
}

TEST_F(DraftTest, AFileNeverReplacesAFolder) {
  fs::create_directory(target_);
  Fill(target_);
  {
    auto draft = Draft::File(target_);
    ASSERT_TRUE(draft.has_value());
    EXPECT_FALSE(draft->MoveTo(target_).ok());
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("target"));
  EXPECT_TRUE(fs::exists(target_ / "inner/file"));
}

TEST_F(DraftTest, OfADeadProcessIsRemovedByTheNextOne) {
  InAProcess([&] {
    auto folder = Draft::Folder(target_);
    Fill(folder->path());
    auto file = Draft::File(target_);
    auto other = Draft::File(dir_.path() / "other");
    ::_exit(0);
  });
  ASSERT_EQ(Names().size(), 3u);
  { auto draft = Draft::File(target_); }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(DraftTest, OfALivingProcessAndWhatOnlyLooksLikeOneStay) {
  const std::vector<std::string> others = {
      ".target.draft.notes", ".target.draft.0123456789abcde", ".target.draft.0123456789abcdeg",
      ".draft.0123456789abcdef", "target.draft.0123456789abcdef"};
  for (const std::string& name : others) ASSERT_TRUE(WriteFileAtomic(dir_.path() / name, "").ok());
  auto folder = Draft::Folder(target_);
  auto file = Draft::File(target_);
  ASSERT_TRUE(folder.has_value() && file.has_value());
  InAProcess([&] {
    { auto draft = Draft::Folder(target_); }
    ::_exit(0);
  });
  EXPECT_TRUE(fs::exists(folder->path()));
  EXPECT_TRUE(fs::exists(file->path()));
  EXPECT_EQ(Names().size(), others.size() + 2);
}

TEST_F(DraftTest, SignalsRemoveItBeforeTheyEndTheProcess) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = InAProcess([&] {
      ::signal(signal, SIG_DFL);
      InstallDraftGuard();
      auto folder = Draft::Folder(target_);
      Fill(folder->path());
      auto file = Draft::File(target_);
      ::raise(signal);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_THAT(Names(), IsEmpty());
  }
}

TEST_F(DraftTest, SignalsThatAreIgnoredStaySo) {
  const int status = InAProcess([&] {
    ::signal(SIGHUP, SIG_IGN);
    InstallDraftGuard();
    auto file = Draft::File(target_);
    ::raise(SIGHUP);
    ::_exit(fs::exists(file->path()) ? 0 : 1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(DraftTest, AFolderIsRemovedAtOnceWithWhatEarlierRemovalsLeft) {
  fs::create_directory(target_);
  Fill(target_);
  Fill(Made(dir_.path() / ".target.draft.0123456789abcdef"));
  ASSERT_TRUE(RemoveAtOnce(target_).ok());
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_EQ(RemoveAtOnce(target_).code(), Code::kNotFound);
  ASSERT_TRUE(WriteFileAtomic(target_, "text").ok());
  ASSERT_TRUE(RemoveAtOnce(target_).ok());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(DraftTest, OfManyProcessesAtOnceOneIsThereAndNothingElse) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool ok = true;
      for (int round = 0; round < 50; ++round) {
        auto draft = Draft::Folder(target_);
        ok = ok && draft.has_value() && WriteFileAtomic(draft->path() / "file", "text").ok() &&
             draft->MoveTo(target_).ok() && fs::exists(target_);
      }
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("target"));
}

}  // namespace
}  // namespace tessera
