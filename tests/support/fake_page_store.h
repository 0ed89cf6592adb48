// SPDX-License-Identifier: Apache-2.0
//
// FakePageStore: a PageStore in memory whose reads are ready when the test says so. It may lose
// pages and be busy, as a disk may, by its own random numbers. One thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "engine/page_store.h"

namespace tessera::testing {

class FakePageStore : public engine::PageStore {
 public:
  struct Options {
    uint64_t seed = 1;
    int ticks_max = 0;  // A read is ready after 0 to so many ticks.
    double loss = 0;    // Share of reads that find nothing.
    double drop = 0;    // Share of pages that are not taken.
    size_t reads_max = 64;
    Duration read_time{};  // Of a page, as it says.
  };
  explicit FakePageStore(Options options) : options_(options), random_(options.seed) {}

  const engine::PageHash& root() const override { return root_; }
  void SetOnReady(std::function<void()>) override {}
  bool Contains(const engine::PageHash& hash) const override { return pages_.contains(hash); }
  bool Put(const engine::PageHash& hash, ByteSpan bytes, Duration) override {
    if (random_.Uniform() < options_.drop) return false;
    const auto [place, is_new] = pages_.try_emplace(hash, bytes.begin(), bytes.end());
    // The same name means the same bytes, whoever computed them.
    TESSERA_CHECK(is_new || std::ranges::equal(place->second, bytes));
    written += is_new ? 1 : 0;
    return true;
  }
  std::shared_ptr<const engine::PageRead> Get(const engine::PageHash& hash) override {
    if (on_the_way_.size() >= options_.reads_max) return nullptr;
    auto coming = std::make_shared<engine::PageRead>();
    on_the_way_.push_back(
        {hash, coming,
         static_cast<int>(random_.Below(static_cast<uint64_t>(options_.ticks_max) + 1))});
    if (on_the_way_.back().ticks == 0) Tick(0);
    return coming;
  }
  Duration ReadTime(int64_t pages) const override { return options_.read_time * pages; }
  void Flush(Duration) override {}
  engine::PageStoreStats stats() const override {
    engine::PageStoreStats stats;
    stats.pages = std::ssize(pages_);
    stats.written = written;
    stats.read = read;
    return stats;
  }

  /// Time goes by: reads come nearer.
  void Tick(int ticks = 1) {
    std::vector<OnTheWay> left;
    for (OnTheWay& one : on_the_way_) {
      one.ticks -= ticks;
      if (one.ticks <= 0) {
        Finish(one);
      } else {
        left.push_back(std::move(one));
      }
    }
    on_the_way_ = std::move(left);
  }
  /// Reading the page will find nothing.
  void Damage(const engine::PageHash& hash) { damaged_ = hash; }

  int64_t written = 0;
  int64_t read = 0;

 private:
  struct OnTheWay {
    engine::PageHash hash;
    std::shared_ptr<engine::PageRead> page;
    int ticks;
  };
  void Finish(const OnTheWay& one) {
    const auto page = pages_.find(one.hash);
    if (page == pages_.end() || one.hash == damaged_ || random_.Uniform() < options_.loss) {
      pages_.erase(one.hash);
      one.page->Finish(nullptr);
      return;
    }
    ++read;
    auto buffer = std::make_shared<engine::PageBuffer>(page->second.size());
    std::ranges::copy(page->second, buffer->data.get());
    one.page->Finish(std::move(buffer));
  }

  const Options options_;
  Random random_;
  const engine::PageHash root_ = engine::RootHash("fake");
  std::map<engine::PageHash, std::vector<std::byte>> pages_;
  engine::PageHash damaged_{};
  std::vector<OnTheWay> on_the_way_;
};

}  // namespace tessera::testing
