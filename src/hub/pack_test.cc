// SPDX-License-Identifier: Apache-2.0
#include "hub/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "hub/cache_pack.h"
#include "hub/cache_scan.h"
#include "hub/repository_cache.h"
#include "support/fixtures.h"

namespace tessera::hub {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PackTest : public ::testing::Test {
 protected:
  /// A repository of two files in a cache of its own, as a download leaves it.
  PackTest() {
    AddFile("config.json", "{}", /*is_large=*/false);
    AddFile("model.safetensors", "weights", /*is_large=*/true);
    EXPECT_TRUE(cache_.SaveListing(listing_).ok());
    EXPECT_TRUE(cache_.WriteRef("main", listing_.commit).ok());
  }
  void AddFile(std::string name, std::string_view bytes, bool is_large) {
    RepositoryFile file;
    file.name = std::move(name);
    file.bytes = bytes.size();
    (is_large ? file.sha256 : file.git_sha1) =
        is_large ? Sha256Hex(AsBytes(bytes)) : GitBlobHex(AsBytes(bytes));
    std::filesystem::create_directories(cache_.folder() / "blobs");
    EXPECT_TRUE(WriteFileAtomic(cache_.BlobPath(file.etag()), bytes).ok());
    EXPECT_TRUE(cache_.Link(listing_.commit, file).ok());
    listing_.files.push_back(file);
  }
  CachedRepository Scanned() {
    const auto found = ScanCache(dir_.path() / "cache");
    EXPECT_THAT(found, SizeIs(1));
    return found.front();
  }
  Status Export(const std::string& commit = "") {
    std::vector<PackSource> sources;
    json::Array repositories;
    TESSERA_RETURN_IF_ERROR(AddToPack(Scanned(), commit, &sources, &repositories));
    return WritePack(std::move(sources), std::move(repositories), pack_, {});
  }
  Status ImportInto(const std::filesystem::path& cache, std::vector<std::string>* kept = nullptr,
                    bool replace = false) {
    TESSERA_ASSIGN_OR_RETURN(PackReader reader, PackReader::Open(pack_));
    for (const json::Value& row : reader.manifest().repositories) {
      TESSERA_ASSIGN_OR_RETURN(RepositoryImport import,
                               RepositoryImport::Begin(row, cache, dir_.path() / "plain"));
      for (const PackEntry& entry : reader.manifest().entries)
        TESSERA_RETURN_IF_ERROR(import.Take(reader, entry));
      std::vector<std::string> ignored;
      TESSERA_RETURN_IF_ERROR(import.Finish(replace, kept != nullptr ? kept : &ignored));
    }
    return {};
  }

  testing::TempDir dir_;
  RepositoryCache cache_{dir_.path() / "cache", "org/repo"};
  Listing listing_{"org/repo", std::string(40, 'c'), "mit", {}};
  std::filesystem::path pack_ = dir_.path() / "models.pack";
};

TEST_F(PackTest, CarriesASnapshotToAnotherCache) {
  ASSERT_TRUE(Export().ok());
  const std::filesystem::path other = dir_.path() / "other";
  ASSERT_TRUE(ImportInto(other).ok());
  const RepositoryCache imported(other, "org/repo");
  EXPECT_EQ(imported.ReadRef("main"), listing_.commit);
  EXPECT_EQ(imported.ReadListing(listing_.commit)->licence, "mit");
  EXPECT_EQ(*ReadFile(imported.SnapshotFolder(listing_.commit) / "model.safetensors", 100),
            "weights");
  ASSERT_TRUE(ImportInto(other).ok()) << "a second time changes nothing";
}

TEST_F(PackTest, NeverWritesOverWhatIsThere) {
  ASSERT_TRUE(WriteFileAtomic(pack_, "precious").ok());
  EXPECT_EQ(Export().code(), Code::kAlreadyExists);
  EXPECT_EQ(*ReadFile(pack_, 100), "precious");
  std::filesystem::remove(pack_);
  ASSERT_TRUE(Export().ok());
  const std::filesystem::path other = dir_.path() / "other";
  const RepositoryCache there(other, "org/repo");
  ASSERT_TRUE(there.WriteRef("main", std::string(40, 'd')).ok());
  std::vector<std::string> kept;
  ASSERT_TRUE(ImportInto(other, &kept).ok());
  EXPECT_EQ(there.ReadRef("main"), std::string(40, 'd'));
  EXPECT_THAT(kept, SizeIs(1));
  ASSERT_TRUE(ImportInto(other, &kept, /*replace=*/true).ok());
  EXPECT_EQ(there.ReadRef("main"), listing_.commit);
}

TEST_F(PackTest, EveryDamagedByteIsNoticedAndNothingIsVisible) {
  ASSERT_TRUE(Export().ok());
  const std::string whole = *ReadFile(pack_, 1 << 20);
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 1);
    ASSERT_TRUE(WriteFileAtomic(pack_, text).ok());
    const std::filesystem::path other = dir_.path() / "other";
    EXPECT_FALSE(ImportInto(other).ok()) << at;
    EXPECT_FALSE(std::filesystem::exists(
        RepositoryCache(other, "org/repo").SnapshotFolder(listing_.commit)));
    std::filesystem::remove_all(other);
  }
  ASSERT_TRUE(WriteFileAtomic(pack_, whole.substr(0, whole.size() - 1)).ok());
  EXPECT_THAT(ImportInto(dir_.path() / "other").message(), HasSubstr("not copied whole"));
}

TEST_F(PackTest, ADamagedBlobIsNotPackedAndFoundByVerify) {
  EXPECT_THAT(*FindDamagedBlobs(Scanned(), {}), IsEmpty());
  const auto blob = cache_.BlobPath(listing_.files[1].etag());
  ASSERT_TRUE(WriteFileAtomic(blob, "Weights").ok());
  EXPECT_EQ(Export().code(), Code::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(pack_));
  EXPECT_THAT(*FindDamagedBlobs(Scanned(), {}), ::testing::ElementsAre(blob));
  std::filesystem::remove(blob);
  std::filesystem::create_symlink(blob, blob);
  EXPECT_THAT(*FindDamagedBlobs(Scanned(), {}), ::testing::ElementsAre(blob)) << "a circle";
}

TEST(PackManifest, EntriesThatReachOutsideAreRefused) {
  const auto list = [](std::string_view path) {
    return ParsePackManifest(
        WritePackManifest({{{std::string(path), 1, std::string(64, 'a')}}, {}}));
  };
  EXPECT_TRUE(list("bundles/a/b/c").has_value());
  for (const char* path : {"../x", "/etc/passwd", "a/../b", "a\\b", "", "a//b"})
    EXPECT_FALSE(list(path).has_value()) << path;
}

TEST_F(PackTest, ARepositoryIsRemovedAsAWhole) {
  ASSERT_TRUE(RemoveRepository(Scanned()).ok());
  EXPECT_THAT(ScanCache(dir_.path() / "cache"), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path() / "cache"));
}

}  // namespace
}  // namespace tessera::hub
