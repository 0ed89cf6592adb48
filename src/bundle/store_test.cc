// SPDX-License-Identifier: Apache-2.0
#include "bundle/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "support/fixtures.h"

namespace tessera::bundle {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

BundleId SampleId() {
  return {.model = "org/tiny",
          .target = "cpu",
          .tensor_parallel = 1,
          .quantization = "source",
          .options = {{"max_seq_len", "64"}},
          .program_options = {{"page_tokens", "32"}},
          .sources = {{"model.gguf", 3, Sha256Hex(AsBytes("abc"))}},
          .program_sources = {{"template", 2, Sha256Hex(AsBytes("hi"))}}};
}

Manifest ManifestOf(const BundleId& id) {
  Manifest manifest;
  manifest.tessera_version = "0.1";
  manifest.model = id.model;
  manifest.key = id.Key();
  manifest.target = id.target;
  manifest.isa = "x86-64-v3";
  manifest.tensor_parallel = id.tensor_parallel;
  manifest.quantization = id.quantization;
  manifest.export_key = id.ExportKey();
  manifest.options = id.AllOptions();
  manifest.source.files = id.AllSources();
  manifest.page = {"[layer]", "F16", 32, 1024};
  return manifest;
}

/// Makes the bundle, or returns the folder that is there; counts the makes in a file.
Result<fs::path> Ensure(const Store& store, const BundleId& id, const fs::path& log) {
  TESSERA_ASSIGN_OR_RETURN(const BundleLock lock, store.Lock(id));
  TESSERA_ASSIGN_OR_RETURN(const auto found, store.Find(id));
  if (found) return *found;
  TESSERA_ASSIGN_OR_RETURN(BundleDraft draft, store.NewDraft(lock));
  TESSERA_RETURN_IF_ERROR(draft.AddFile("config.json", "{}"));
  FILE* file = std::fopen(log.c_str(), "a");
  std::fputs("made\n", file);
  std::fclose(file);
  return std::move(draft).Publish(ManifestOf(id));
}

class StoreTest : public ::testing::Test {
 protected:
  fs::path MustEnsure(const BundleId& id) {
    const Result<fs::path> folder = Ensure(store_, id, dir_.path() / "log");
    EXPECT_TRUE(folder.has_value()) << folder.error().ToString();
    return folder.value_or(fs::path());
  }
  std::vector<std::string> NamesInModelFolder() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(store_.FolderOf(SampleId()).parent_path()))
      names.push_back(entry.path().filename().string());
    return names;
  }
  testing::TempDir dir_;
  Store store_{dir_.path() / "cache"};
};

TEST_F(StoreTest, PublishesUnderTheDocumentedPath) {
  const fs::path folder = MustEnsure(SampleId());
  EXPECT_EQ(folder,
            dir_.path() / "cache/bundles/org--tiny" / ("cpu-tp1-source-" + SampleId().Key()));
  const auto manifest = ReadManifest(testing::ReadAll(folder / "manifest.json"), "m");
  ASSERT_TRUE(manifest.has_value()) << manifest.error().ToString();
  ASSERT_NE(manifest->FindFile("config.json"), nullptr);
  EXPECT_TRUE(VerifyFiles(folder, *manifest, Check::kEverything).ok());
}

TEST_F(StoreTest, PublishesNoManifestThatCannotBeReadBack) {
  BundleId id = SampleId();
  const auto lock = store_.Lock(id);
  auto draft = store_.NewDraft(*lock);
  Manifest manifest = ManifestOf(id);
  manifest.source.repository = "models/caf\xE9";
  const auto published = std::move(*draft).Publish(manifest);
  ASSERT_FALSE(published.has_value());
  EXPECT_THAT(published.error().ToString(), HasSubstr("UTF-8"));
  EXPECT_FALSE(fs::exists(store_.FolderOf(id)));
}

TEST_F(StoreTest, ReusesWhatIsThere) {
  MustEnsure(SampleId());
  MustEnsure(SampleId());
  EXPECT_EQ(testing::ReadAll(dir_.path() / "log"), "made\n");
}

TEST_F(StoreTest, KeyChangesWithEveryFieldThatChangesTheOutput) {
  const std::string key = SampleId().Key();
  EXPECT_EQ(key.size(), 16u);
  BundleId id = SampleId();
  id.model = "other";
  EXPECT_EQ(id.Key(), key);
  id = SampleId(), id.target = "gfx942";
  EXPECT_NE(id.Key(), key);
  id = SampleId(), id.tensor_parallel = 2;
  EXPECT_NE(id.Key(), key);
  id = SampleId(), id.quantization = "q8_0";
  EXPECT_NE(id.Key(), key);
  id = SampleId(), id.options["max_seq_len"] = "65";
  EXPECT_NE(id.Key(), key);
  id = SampleId(), id.sources[0].sha256 = Sha256Hex(AsBytes("abd"));
  EXPECT_NE(id.Key(), key);
  id = SampleId(), id.program_options["page_tokens"] = "16";
  EXPECT_NE(id.Key(), key);
  id = SampleId(), id.program_sources[0].sha256 = Sha256Hex(AsBytes("ho"));
  EXPECT_NE(id.Key(), key);
  id = SampleId(), id.sources[0].name = "renamed.gguf";
  EXPECT_EQ(id.Key(), key);
}

TEST_F(StoreTest, ParametersOfABundleServeAnotherThatDiffersInItsProgramOnly) {
  const fs::path folder = MustEnsure(SampleId());
  const auto found = [&](const BundleId& id) {
    const auto exported = store_.FindExport(id);
    return exported ? exported->folder : fs::path();
  };
  EXPECT_EQ(found(SampleId()), folder);
  BundleId id = SampleId();
  id.program_options["page_tokens"] = "16";
  EXPECT_EQ(found(id), folder);
  id = SampleId(), id.program_sources.clear();
  EXPECT_EQ(found(id), folder);
  id = SampleId(), id.options["max_seq_len"] = "65";
  EXPECT_EQ(found(id), fs::path());
  id = SampleId(), id.sources[0].sha256 = Sha256Hex(AsBytes("abd"));
  EXPECT_EQ(found(id), fs::path());
  id = SampleId(), id.tensor_parallel = 2;
  EXPECT_EQ(found(id), fs::path());
  ASSERT_TRUE(WriteFileAtomic(folder / "config.json", "[]").ok());
  EXPECT_EQ(found(SampleId()), fs::path()) << "a damaged bundle gives nothing away";
}

TEST_F(StoreTest, AnAbandonedDraftLeavesNothing) {
  {
    auto lock = store_.Lock(SampleId());
    ASSERT_TRUE(lock.has_value());
    auto draft = store_.NewDraft(*lock);
    ASSERT_TRUE(draft.has_value());
    ASSERT_TRUE(draft->AddFile("config.json", "{}").ok());
    const auto found = store_.Find(SampleId());
    ASSERT_TRUE(found.has_value());
    EXPECT_FALSE(found->has_value()) << "a draft must not be visible";
  }
  EXPECT_THAT(NamesInModelFolder(), ::testing::ElementsAre(::testing::EndsWith(".lock")));
}

TEST_F(StoreTest, RemovesWhatADeadWriterLeft) {
  MustEnsure(SampleId());
  const fs::path folder = store_.FolderOf(SampleId());
  const fs::path stale =
      folder.parent_path() / ("." + folder.filename().string() + ".draft.0123456789abcdef");
  fs::create_directories(stale / "x");
  auto lock = store_.Lock(SampleId());
  ASSERT_TRUE(lock.has_value());
  ASSERT_TRUE(store_.NewDraft(*lock).has_value());
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(folder));
}

TEST_F(StoreTest, TwoProcessesOfOneKeyWaitForEachOther) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(Ensure(store_, SampleId(), dir_.path() / "log").has_value() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(testing::ReadAll(dir_.path() / "log"), "made\n");
}

TEST_F(StoreTest, SaysThatItWaits) {
  auto first = store_.Lock(SampleId());
  ASSERT_TRUE(first.has_value());
  std::atomic<bool> waiting = false;
  std::thread second([&] {
    const auto lock = store_.Lock(SampleId(), [&] { waiting = true; });
    EXPECT_TRUE(lock.has_value());
  });
  while (!waiting) std::this_thread::yield();
  { const BundleLock released = *std::move(first); }
  second.join();
}

TEST_F(StoreTest, NamesADamagedFileAndReplacesTheBundle) {
  const fs::path folder = MustEnsure(SampleId());
  ASSERT_TRUE(WriteFileAtomic(folder / "config.json", "[]").ok());
  const auto found = store_.Find(SampleId());
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code(), Code::kDataLoss);
  EXPECT_THAT(found.error().ToString(), HasSubstr("config.json has SHA-256"));
  auto lock = store_.Lock(SampleId());
  auto draft = store_.NewDraft(*lock);
  ASSERT_TRUE(draft->AddFile("config.json", "{\"a\":1}").ok());
  ASSERT_TRUE(std::move(*draft).Publish(ManifestOf(SampleId())).has_value());
  EXPECT_TRUE(store_.Find(SampleId()).value().has_value());
  EXPECT_EQ(testing::ReadAll(folder / "config.json"), "{\"a\":1}");
  EXPECT_EQ(NamesInModelFolder().size(), 2u);
}

TEST_F(StoreTest, ExplainsWhatDiffersFromTheNewestSibling) {
  EXPECT_FALSE(store_.NewestSibling(SampleId()).has_value());
  MustEnsure(SampleId());
  BundleId wanted = SampleId();
  wanted.options["max_seq_len"] = "128";
  wanted.options["bs"] = "4";
  const auto sibling = store_.NewestSibling(wanted);
  ASSERT_TRUE(sibling.has_value());
  EXPECT_EQ(ExplainDifference(*sibling, wanted),
            "max_seq_len changed 64 -> 128, bs changed (none) -> 4");
  wanted = SampleId(), wanted.sources[0].sha256 = Sha256Hex(AsBytes("x"));
  EXPECT_EQ(ExplainDifference(*sibling, wanted), "source files changed");
  EXPECT_EQ(ExplainDifference(*sibling, SampleId()), "");
}

TEST_F(StoreTest, ExplainsOfTheExportOnlyWhatItDependsOn) {
  MustEnsure(SampleId());
  BundleId wanted = SampleId();
  wanted.tensor_parallel = 4;
  wanted.program_options["page_tokens"] = "64";
  wanted.program_sources.push_back({"template", 1, Sha256Hex(AsBytes("t"))});
  const auto sibling = store_.NewestSibling(wanted);
  ASSERT_TRUE(sibling.has_value());
  EXPECT_EQ(ExplainDifference(*sibling, wanted, Stages::kExport),
            "tensor parallelism changed 1 -> 4");
  EXPECT_THAT(ExplainDifference(*sibling, wanted), HasSubstr("source files changed"));
  wanted.sources[0].sha256 = Sha256Hex(AsBytes("x"));
  EXPECT_THAT(ExplainDifference(*sibling, wanted, Stages::kExport),
              HasSubstr("source files changed"));
}

TEST(FolderSafeName, KeepsPathsInsideTheCache) {
  EXPECT_EQ(FolderSafeName("org/Model-1.5"), "org--Model-1.5");
  EXPECT_EQ(FolderSafeName("../x"), "_..--x");
  EXPECT_EQ(FolderSafeName(""), "_");
  EXPECT_EQ(FolderSafeName("a b\n"), "a_b_");
}

}  // namespace
}  // namespace tessera::bundle
