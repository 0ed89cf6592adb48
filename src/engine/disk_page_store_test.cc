// SPDX-License-Identifier: Apache-2.0
//
// Pages on a real disk: they outlive the process, and nothing but what was put is ever given back.
#include "engine/disk_page_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "base/file.h"
#include "support/fixtures.h"

namespace tessera::engine {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr int64_t kPageBytes = 5000;
constexpr int64_t kFileBytes = kPageBytes + static_cast<int64_t>(kKvPageHeaderBytes);

PageHash Hash(int i) {
  return RootHash(std::to_string(i));
}
std::string Page(int i) {
  std::string page(static_cast<size_t>(kPageBytes), static_cast<char>('a' + i % 26));
  page.replace(0, 8, std::to_string(i) + "       ", 0, 8);
  return page;
}

class DiskPageStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<DiskPageStore> Open(int64_t pages = 100, std::string_view model = "model") {
    auto store = DiskPageStore::Open({.path = folder_ / "kv",
                                      .bytes_max = pages * kFileBytes,
                                      .page_bytes = kPageBytes,
                                      .root = RootHash(model)},
                                     &Clock::Real());
    EXPECT_TRUE(store.has_value()) << store.error().ToString();
    return *std::move(store);
  }
  static void Put(DiskPageStore* store, int i) {
    EXPECT_TRUE(store->Put(Hash(i), AsBytes(Page(i)), seconds(10)));
  }
  /// What the store gives, once it has done so.
  static std::string Read(DiskPageStore* store, int i) {
    std::shared_ptr<const PageRead> read;
    while (read == nullptr) read = store->Get(Hash(i));
    while (!read->is_ready()) std::this_thread::yield();
    return std::string(AsText(read->bytes()));
  }
  void Fill(int pages) {
    const auto store = Open();
    for (int i = 0; i < pages; ++i) Put(store.get(), i);
    store->Flush(seconds(10));
    EXPECT_EQ(store->stats().written, pages);
  }
  fs::path PathOf(int i) const {
    const std::string hex = HexOf(Hash(i));
    return folder_ / "kv/pages" / hex.substr(0, 2) / (hex + ".kv");
  }

  const testing::TempDir temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(DiskPageStoreTest, PagesOutliveTheStore) {
  Fill(5);
  const auto store = Open();
  EXPECT_EQ(store->stats().pages, 5);
  EXPECT_EQ(store->stats().bytes, 5 * kFileBytes);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(store->Contains(Hash(i)));
    EXPECT_EQ(Read(store.get(), i), Page(i));
  }
  EXPECT_FALSE(store->Contains(Hash(5)));
  EXPECT_EQ(store->stats().read, 5);
  EXPECT_GT(store->stats().read_seconds, 0);
  EXPECT_GT(store->ReadTime(1), Duration::zero());
}

TEST_F(DiskPageStoreTest, APageIsThereFromTheMomentItIsTaken) {
  const auto store = Open();
  for (int i = 0; i < 50; ++i) {
    Put(store.get(), i);
    EXPECT_TRUE(store->Contains(Hash(i)));
    EXPECT_EQ(Read(store.get(), i), Page(i));
  }
}

TEST_F(DiskPageStoreTest, WhatIsThereIsNotWrittenAgain) {
  const auto store = Open();
  for (int round = 0; round < 3; ++round) {
    Put(store.get(), 1);
    store->Flush(seconds(10));
  }
  EXPECT_EQ(store->stats().written, 1);
}

TEST_F(DiskPageStoreTest, TheQuotaHoldsAndTheLastUsedStay) {
  Fill(6);
  for (int i = 0; i < 6; ++i)  // A file system's clock may tick slowly.
    fs::last_write_time(PathOf(i), fs::file_time_type::clock::now() - seconds(100 - i));
  {
    const auto store = Open(6);
    EXPECT_EQ(Read(store.get(), 0), Page(0));  // Now others are older.
    Put(store.get(), 6);
    Put(store.get(), 7);
    store->Flush(seconds(10));
    EXPECT_EQ(store->stats().pages, 6);
    EXPECT_EQ(store->stats().evictions, 2);
    EXPECT_TRUE(store->Contains(Hash(0)));
    EXPECT_FALSE(store->Contains(Hash(1)));
    EXPECT_FALSE(fs::exists(PathOf(1)));
    EXPECT_TRUE(store->Contains(Hash(7)));
  }
  // A smaller quota holds from the start, by the order of use of the process before.
  const auto store = Open(3);
  EXPECT_EQ(store->stats().pages, 3);
  for (const int i : {0, 6, 7}) EXPECT_TRUE(store->Contains(Hash(i))) << i;
}

TEST_F(DiskPageStoreTest, AQuotaWithoutRoomForAPageIsRefused) {
  for (const int64_t more : {-1, 0, 1}) {
    const auto store = DiskPageStore::Open({.path = folder_ / "kv",
                                            .bytes_max = kFileBytes + more,
                                            .page_bytes = kPageBytes,
                                            .root = {}},
                                           &Clock::Real());
    EXPECT_EQ(store.has_value(), more >= 0);
    if (!store.has_value()) {
      EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
    }
  }
}

TEST_F(DiskPageStoreTest, DamagedPagesAreMissesAndDeleted) {
  Fill(6);
  const auto file_of = [&](int i) { return ReadFile(PathOf(i), 1 << 20).value(); };
  const auto write = [&](int i, const std::string& bytes) {
    std::ofstream(PathOf(i), std::ios::binary) << bytes;
  };
  std::string bytes = file_of(0);
  bytes[200] ^= 1;
  write(0, bytes);                                               // A flipped bit.
  write(1, file_of(1).substr(0, kPageBytes));                    // Cut.
  write(2, file_of(2) + "x");                                    // More.
  write(3, file_of(4));                                          // Another page's.
  write(5, std::string(static_cast<size_t>(kFileBytes), '\0'));  // Zeros, as after a power failure.
  const auto store = Open();
  for (const int i : {0, 1, 2, 3, 5}) {
    EXPECT_EQ(Read(store.get(), i), "") << i;
    EXPECT_FALSE(store->Contains(Hash(i))) << i;
    EXPECT_FALSE(fs::exists(PathOf(i))) << i;
  }
  EXPECT_EQ(Read(store.get(), 4), Page(4));
  EXPECT_EQ(store->stats().corrupt, 5);
  Put(store.get(), 0);
  store->Flush(seconds(10));
  EXPECT_EQ(Read(store.get(), 0), Page(0)) << "it is computed anew and stored again";
}

TEST_F(DiskPageStoreTest, APageThatWentAwayIsAMiss) {
  Fill(2);
  const auto store = Open();
  fs::remove(PathOf(0));
  EXPECT_EQ(Read(store.get(), 0), "");
  EXPECT_EQ(store->stats().corrupt, 1);
  EXPECT_EQ(Read(store.get(), 1), Page(1));
}

TEST_F(DiskPageStoreTest, NeitherAFolderNorAFifoNorALinkIsAPage) {
  Fill(3);
  for (int i = 0; i < 3; ++i) fs::remove(PathOf(i));
  fs::create_directory(PathOf(0));
  ASSERT_EQ(::mkfifo(PathOf(1).c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", PathOf(2));
  const auto store = Open();
  EXPECT_EQ(store->stats().pages, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Read(store.get(), i), "");
}

TEST_F(DiskPageStoreTest, PagesOfAnotherModelAreNeverOurs) {
  Fill(3);
  const auto store = Open(100, "another model");
  EXPECT_EQ(store->stats().pages, 3) << "but they count";
  // Even if the names were the same.
  EXPECT_EQ(Read(store.get(), 0), "");
  EXPECT_EQ(store->stats().corrupt, 1);
}

TEST_F(DiskPageStoreTest, AFolderHasOneProcessAtATime) {
  auto store = Open();
  const auto second = DiskPageStore::Open(
      {.path = folder_ / "kv", .bytes_max = 100 * kFileBytes, .page_bytes = kPageBytes, .root = {}},
      &Clock::Real());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_NE(second.error().message().find("in use by another process"), std::string::npos);
  store.reset();
  Open();
}

TEST_F(DiskPageStoreTest, AnUnusableFolderIsAnErrorAtTheStart) {
  std::ofstream(folder_ / "kv") << "a file";
  const auto store = DiskPageStore::Open(
      {.path = folder_ / "kv", .bytes_max = 100 * kFileBytes, .page_bytes = kPageBytes, .root = {}},
      &Clock::Real());
  ASSERT_FALSE(store.has_value());
  EXPECT_NE(store.error().message().find("Not a directory"), std::string::npos)
      << store.error().ToString();
}

TEST_F(DiskPageStoreTest, LeftoversOfADeadWriterGoAndStrangersFilesStay) {
  Fill(1);
  std::ofstream(folder_ / "kv/tmp/7") << "half a page";
  std::ofstream(folder_ / "kv/notes") << "mine";
  std::ofstream(PathOf(0).parent_path() / "0123.kv") << "no page of ours";
  const auto store = Open(1);
  EXPECT_TRUE(fs::is_empty(folder_ / "kv/tmp"));
  EXPECT_EQ(store->stats().pages, 1);
  Put(store.get(), 1);
  store->Flush(seconds(10));
  EXPECT_TRUE(fs::exists(folder_ / "kv/notes"));
  EXPECT_TRUE(fs::exists(PathOf(0).parent_path() / "0123.kv"));
}

TEST_F(DiskPageStoreTest, AFailedWriteEndsWritingOnly) {
  Fill(2);
  const auto store = Open();
  fs::remove_all(folder_ / "kv/tmp");  // What cannot be written to, also for root.
  store->Put(Hash(7), AsBytes(Page(7)), {});
  store->Flush(seconds(10));
  EXPECT_FALSE(store->stats().is_writable);
  EXPECT_FALSE(store->Put(Hash(8), AsBytes(Page(8)), {}));
  EXPECT_EQ(store->stats().dropped, 2);
  EXPECT_FALSE(store->Contains(Hash(7)));
  EXPECT_EQ(Read(store.get(), 0), Page(0));
}

TEST_F(DiskPageStoreTest, AFullQueueDropsAndNeverWaits) {
  auto store = Open();
  int64_t taken = 0;
  for (int i = 0; i < 20000 && store->stats().dropped == 0; ++i)
    taken += store->Put(Hash(i), AsBytes(Page(i)), {}) ? 1 : 0;
  EXPECT_GT(store->stats().dropped, 0);
  EXPECT_GT(taken, 1000) << "32 MiB may wait, but no more pages than the limit";
  store->Flush(seconds(60));
  EXPECT_EQ(store->stats().written, taken);
}

TEST_F(DiskPageStoreTest, SoManyReadsAreOnTheirWayAndWhatIsDroppedMakesRoom) {
  const auto store = Open();
  std::vector<std::shared_ptr<const PageRead>> reads;
  for (int i = 0;; ++i) {
    auto read = store->Get(Hash(i));
    if (read == nullptr) break;
    reads.push_back(std::move(read));
    ASSERT_LT(i, 100000);
  }
  EXPECT_EQ(reads.size(), 1024u);
  EXPECT_EQ(store->Get(Hash(0)), reads[0]) << "who asks for the same gets the same";
  reads.pop_back();
  while (store->Get(Hash(5000)) == nullptr) std::this_thread::yield();
}

TEST_F(DiskPageStoreTest, TellsWhenAReadIsReady) {
  Fill(1);
  const auto store = Open();
  std::atomic<int> calls{0};
  store->SetOnReady([&] { ++calls; });
  EXPECT_EQ(Read(store.get(), 0), Page(0));
  while (calls == 0) std::this_thread::yield();
  store->SetOnReady({});
  EXPECT_EQ(Read(store.get(), 0), Page(0));
  EXPECT_EQ(calls, 1);
}

/// A process that writes until it is killed, again and again, leaves whole pages only.
TEST_F(DiskPageStoreTest, KilledAtAnyTimeItLeavesNoWrongPage) {
  for (int round = 0; round < 8; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = DiskPageStore::Open({.path = folder_ / "kv",
                                              .bytes_max = 1000 * kFileBytes,
                                              .page_bytes = kPageBytes,
                                              .root = RootHash("model")},
                                             &Clock::Real());
      if (!store.has_value()) ::_exit(1);
      for (int i = 0;; ++i)
        (*store)->Put(Hash(i % 2000 + round), AsBytes(Page(i % 2000 + round)), seconds(1));
    }
    ::usleep(static_cast<useconds_t>(10000 + 7919 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  const auto store = Open(1000);
  int found = 0;
  for (int i = 0; i < 2100; ++i) {
    if (!store->Contains(Hash(i))) continue;
    ++found;
    EXPECT_EQ(Read(store.get(), i), Page(i)) << i;
  }
  EXPECT_GT(found, 10);
  EXPECT_EQ(store->stats().corrupt, 0);
}

}  // namespace
}  // namespace tessera::engine
