// SPDX-License-Identifier: Apache-2.0
//
// DiskPageStore: a PageStore over one folder (page_folder.h) with a quota. A thread of its own does
// all I/O, reads before writes. Both queues are bounded: what does not fit is dropped or has to be
// asked for again. The pages used longest ago go first when the quota is full.
//
// A page that is damaged, cut or gone is a miss: it is deleted and counted. A failed write (a full
// disk, a folder that went away) ends all writing with one warning; reading goes on.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/status.h"
#include "engine/page_folder.h"
#include "engine/page_index.h"
#include "engine/page_store.h"

namespace tessera::engine {

struct DiskPageStoreOptions {
  std::filesystem::path path;
  int64_t bytes_max = 0;  // Of all files, whatever made them.
  int64_t page_bytes = 0;
  PageHash root{};
};

class DiskPageStore final : public PageStore {
 public:
  /// Reads the folder's list. kInvalidArgument when the quota has no room for a page, else as
  /// PageFolder::Open. `clock` must outlive the store.
  static Result<std::unique_ptr<DiskPageStore>> Open(const DiskPageStoreOptions& options,
                                                     const Clock* clock);
  /// Drops what is not stored yet; waits for the call to the disk that runs.
  ~DiskPageStore() override;
  DiskPageStore(const DiskPageStore&) = delete;
  DiskPageStore& operator=(const DiskPageStore&) = delete;

  const PageHash& root() const override { return options_.root; }
  void SetOnReady(std::function<void()> on_ready) override;
  bool Contains(const PageHash& hash) const override;
  bool Put(const PageHash& hash, ByteSpan bytes, Duration patience) override;
  std::shared_ptr<const PageRead> Get(const PageHash& hash) override;
  Duration ReadTime(int64_t pages) const override;
  void Flush(Duration patience) override;
  PageStoreStats stats() const override;

 private:
  using Buffer = std::shared_ptr<const PageBuffer>;
  struct Reading {
    PageHash hash;
    std::shared_ptr<PageRead> read;
  };

  DiskPageStore(const DiskPageStoreOptions& options, std::unique_ptr<PageFolder> folder,
                const Clock* clock);
  Status Start();
  bool HasRoom() const { return std::ssize(writes_) < writes_max_; }
  KvPageName NameOf(const PageHash& hash) const;
  // On the store's thread; `lock` is held on call and return, not while the disk works.
  void Run();
  void ReadOne(std::unique_lock<std::mutex>* lock);
  void WriteOne(std::unique_lock<std::mutex>* lock);
  void NoteRead(const PageHash& hash, const Result<Buffer>& page, double seconds);
  void EndWriting(const Status& why);

  const DiskPageStoreOptions options_;
  const std::unique_ptr<PageFolder> folder_;  // The store's thread only, once it runs.
  const Clock* const clock_;
  const int64_t writes_max_, reads_max_;  // Pages.

  mutable std::mutex mutex_;      // Guards all to the next blank line.
  std::condition_variable work_;  // For the store's thread.
  std::condition_variable room_;  // A write is done.
  PageIndex index_;
  std::deque<PageHash> writes_;                                   // The first is being written.
  std::unordered_map<PageHash, Buffer, PageHashHasher> pending_;  // Of writes_.
  std::deque<Reading> reads_;
  /// Those asked for and neither dropped nor used up.
  std::unordered_map<PageHash, std::weak_ptr<PageRead>, PageHashHasher> wanted_;
  double seconds_per_read_ = 0;  // 0: not known.
  PageStoreStats stats_;
  bool is_stopping_ = false;

  std::mutex on_ready_mutex_;  // Held while it is called.
  std::function<void()> on_ready_;
  std::thread thread_;
};

}  // namespace tessera::engine
