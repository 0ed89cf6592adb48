// SPDX-License-Identifier: Apache-2.0
#include "engine/disk_page_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/limits.h"

namespace tessera::engine {
namespace {

constexpr double kNewestReadWeight = 0.2;  // In the mean time of a read.

int64_t PagesWithin(int64_t bytes, int64_t page_bytes) {
  return std::clamp<int64_t>(bytes / page_bytes, 1, kStorePagesOnTheWayMax);
}

}  // namespace

DiskPageStore::DiskPageStore(const DiskPageStoreOptions& options,
                             std::unique_ptr<PageFolder> folder, const Clock* clock)
    : options_(options),
      folder_(std::move(folder)),
      clock_(clock),
      writes_max_(PagesWithin(kStoreWriteBytesMax, options.page_bytes)),
      reads_max_(PagesWithin(kStoreReadBytesMax, options.page_bytes)),
      index_(options.bytes_max, kStorePagesMax) {}

Result<std::unique_ptr<DiskPageStore>> DiskPageStore::Open(const DiskPageStoreOptions& options,
                                                           const Clock* clock) {
  TESSERA_CHECK(options.page_bytes > 0);
  const int64_t file_bytes = options.page_bytes + static_cast<int64_t>(kKvPageHeaderBytes);
  if (options.bytes_max < file_bytes)
    return Fail(InvalidArgument(fmt::format("a quota of {} bytes holds no page, which needs {}",
                                            options.bytes_max, file_bytes)));
  TESSERA_ASSIGN_OR_RETURN(auto folder, PageFolder::Open(options.path));
  std::unique_ptr<DiskPageStore> store(new DiskPageStore(options, std::move(folder), clock));
  TESSERA_RETURN_IF_ERROR(store->Start());
  return store;
}

Status DiskPageStore::Start() {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<PageFolder::File> files, folder_->List());
  for (const PageFolder::File& file : files) {
    index_.Add(file.hash, file.bytes);
    while (const auto victim = index_.TakeExcess(0)) folder_->Remove(*victim);
  }
  TESSERA_ASSIGN_OR_RETURN(thread_, StartThread("the KV pages on disk", [this] { Run(); }));
  return {};
}

DiskPageStore::~DiskPageStore() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

KvPageName DiskPageStore::NameOf(const PageHash& hash) const {
  return {options_.root, hash, static_cast<uint64_t>(options_.page_bytes)};
}

void DiskPageStore::SetOnReady(std::function<void()> on_ready) {
  const std::lock_guard lock(on_ready_mutex_);
  on_ready_ = std::move(on_ready);
}

bool DiskPageStore::Contains(const PageHash& hash) const {
  const std::lock_guard lock(mutex_);
  return index_.Contains(hash) || pending_.contains(hash);
}

bool DiskPageStore::Put(const PageHash& hash, ByteSpan bytes, Duration patience) {
  TESSERA_CHECK(std::ssize(bytes) == options_.page_bytes);
  std::unique_lock lock(mutex_);
  if (index_.Contains(hash) || pending_.contains(hash)) {
    index_.Touch(hash);
    return true;
  }
  room_.wait_for(lock, patience, [this] { return HasRoom() || !stats_.is_writable; });
  if (!HasRoom() || !stats_.is_writable) {
    ++stats_.dropped;
    return false;
  }
  lock.unlock();
  auto buffer = std::make_shared<PageBuffer>(bytes.size());
  std::memcpy(buffer->data.get(), bytes.data(), bytes.size());
  lock.lock();
  if (!stats_.is_writable) {  // Since a moment ago.
    ++stats_.dropped;
    return false;
  }
  writes_.push_back(hash);
  pending_.emplace(hash, std::move(buffer));
  lock.unlock();
  work_.notify_one();
  return true;
}

std::shared_ptr<const PageRead> DiskPageStore::Get(const PageHash& hash) {
  std::unique_lock lock(mutex_);
  std::erase_if(wanted_, [](const auto& wanted) { return wanted.second.expired(); });
  if (const auto wanted = wanted_.find(hash); wanted != wanted_.end())
    if (auto read = wanted->second.lock(); read != nullptr) return read;
  auto read = std::make_shared<PageRead>();
  if (const auto pending = pending_.find(hash); pending != pending_.end()) {
    read->Finish(pending->second);  // It has not left memory yet.
    return read;
  }
  if (std::ssize(wanted_) >= reads_max_) return nullptr;
  wanted_[hash] = read;
  reads_.push_back({hash, read});
  lock.unlock();
  work_.notify_one();
  return read;
}

Duration DiskPageStore::ReadTime(int64_t pages) const {
  const std::lock_guard lock(mutex_);
  const auto all = static_cast<double>(pages + std::ssize(reads_));
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(seconds_per_read_ * all));
}

void DiskPageStore::Flush(Duration patience) {
  std::unique_lock lock(mutex_);
  room_.wait_for(lock, patience, [this] { return writes_.empty(); });
}

PageStoreStats DiskPageStore::stats() const {
  const std::lock_guard lock(mutex_);
  PageStoreStats stats = stats_;
  stats.pages = index_.pages();
  stats.bytes = index_.bytes();
  return stats;
}

void DiskPageStore::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return is_stopping_ || !reads_.empty() || !writes_.empty(); });
    if (is_stopping_) return;
    if (!reads_.empty()) {
      ReadOne(&lock);
    } else {
      WriteOne(&lock);
    }
  }
}

void DiskPageStore::ReadOne(std::unique_lock<std::mutex>* lock) {
  const Reading reading = std::move(reads_.front());
  reads_.pop_front();
  if (reading.read.use_count() == 1) return;  // Nobody wants it any more.
  lock->unlock();
  const TimePoint begin = clock_->Now();
  Result<Buffer> page = folder_->Read(NameOf(reading.hash));
  const double seconds = Seconds(clock_->Now() - begin);
  if (page.has_value()) {
    folder_->Touch(reading.hash);
  } else {
    folder_->Remove(reading.hash);
  }
  lock->lock();
  NoteRead(reading.hash, page, seconds);
  lock->unlock();
  reading.read->Finish(page.has_value() ? *std::move(page) : nullptr);
  {
    const std::lock_guard calling(on_ready_mutex_);
    if (on_ready_) on_ready_();
  }
  lock->lock();
}

void DiskPageStore::NoteRead(const PageHash& hash, const Result<Buffer>& page, double seconds) {
  stats_.read_seconds += seconds;
  if (!page.has_value()) {
    if (!index_.Contains(hash)) return;  // The quota took it meanwhile.
    index_.Remove(hash);
    ++stats_.corrupt;
    log::debug("a KV page on disk is lost: {}", page.error().ToString());
    return;
  }
  ++stats_.read;
  index_.Touch(hash);
  seconds_per_read_ = seconds_per_read_ == 0
                          ? seconds
                          : seconds_per_read_ + kNewestReadWeight * (seconds - seconds_per_read_);
}

void DiskPageStore::WriteOne(std::unique_lock<std::mutex>* lock) {
  const PageHash hash = writes_.front();
  const Buffer buffer = pending_.at(hash);
  const int64_t file_bytes = options_.page_bytes + static_cast<int64_t>(kKvPageHeaderBytes);
  std::vector<PageHash> victims;
  while (const auto victim = index_.TakeExcess(file_bytes)) victims.push_back(*victim);
  stats_.evictions += std::ssize(victims);
  lock->unlock();
  for (const PageHash& victim : victims) folder_->Remove(victim);
  const TimePoint begin = clock_->Now();
  const Status status = folder_->Write(NameOf(hash), {buffer->data.get(), buffer->size});
  const double seconds = Seconds(clock_->Now() - begin);
  lock->lock();
  writes_.pop_front();
  pending_.erase(hash);
  if (status.ok()) {
    index_.Add(hash, file_bytes);
    ++stats_.written;
    stats_.write_seconds += seconds;
  } else {
    ++stats_.dropped;
    EndWriting(status);
  }
  room_.notify_all();
}

void DiskPageStore::EndWriting(const Status& why) {
  stats_.is_writable = false;
  stats_.dropped += std::ssize(writes_);
  writes_.clear();
  pending_.clear();
  log::warn("no more KV pages are written to {}: {}; those that are there are still used",
            folder_->path().string(), why.message());
}

}  // namespace tessera::engine
