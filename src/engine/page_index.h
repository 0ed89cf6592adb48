// SPDX-License-Identifier: Apache-2.0
//
// PageIndex: which pages a store has, how large, and in which order they were last used. It says
// what has to go to keep to the quota. No I/O, no lock: a plain value of its owner.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>

#include "engine/page_hash.h"

namespace tessera::engine {

class PageIndex {
 public:
  PageIndex(int64_t bytes_max, int64_t pages_max) : bytes_max_(bytes_max), pages_max_(pages_max) {}

  bool Contains(const PageHash& hash) const { return places_.contains(hash); }
  /// The page is there now, and the last one used.
  void Add(const PageHash& hash, int64_t bytes);
  /// Marks it as used; no effect on one that is not there.
  void Touch(const PageHash& hash);
  void Remove(const PageHash& hash);
  /// Removes and gives the page used longest ago if, with `bytes` more in a page more, there would
  /// be too much. Ask until there is nothing.
  std::optional<PageHash> TakeExcess(int64_t bytes);

  int64_t pages() const { return static_cast<int64_t>(places_.size()); }
  int64_t bytes() const { return bytes_; }

 private:
  struct Page {
    PageHash hash;
    int64_t bytes;
  };
  using Pages = std::list<Page>;

  const int64_t bytes_max_;
  const int64_t pages_max_;
  Pages pages_;  // Used longest ago first.
  std::unordered_map<PageHash, Pages::iterator, PageHashHasher> places_;
  int64_t bytes_ = 0;
};

}  // namespace tessera::engine
