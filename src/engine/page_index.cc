// SPDX-License-Identifier: Apache-2.0
#include "engine/page_index.h"

#include "base/check.h"

namespace tessera::engine {

void PageIndex::Add(const PageHash& hash, int64_t bytes) {
  TESSERA_CHECK(bytes >= 0);
  Remove(hash);
  pages_.push_back({hash, bytes});
  places_.emplace(hash, std::prev(pages_.end()));
  bytes_ += bytes;
}

void PageIndex::Touch(const PageHash& hash) {
  const auto place = places_.find(hash);
  if (place != places_.end()) pages_.splice(pages_.end(), pages_, place->second);
}

void PageIndex::Remove(const PageHash& hash) {
  const auto place = places_.find(hash);
  if (place == places_.end()) return;
  bytes_ -= place->second->bytes;
  pages_.erase(place->second);
  places_.erase(place);
}

std::optional<PageHash> PageIndex::TakeExcess(int64_t bytes) {
  if (pages_.empty()) return std::nullopt;
  if (bytes_ <= bytes_max_ - bytes && pages() < pages_max_) return std::nullopt;
  const PageHash hash = pages_.front().hash;
  Remove(hash);
  return hash;
}

}  // namespace tessera::engine
