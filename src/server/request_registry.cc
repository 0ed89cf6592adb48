// SPDX-License-Identifier: Apache-2.0
#include "server/request_registry.h"

#include <utility>

namespace tessera::server {

RequestRegistry::Key RequestRegistry::Add(std::vector<std::string> names, engine::ClientId owner,
                                          std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  const Key key = ++last_;
  for (const std::string& name : names) by_name_.emplace(name, key);
  entries_.emplace(key, Entry{std::move(names), owner, std::move(cancel)});
  return key;
}

void RequestRegistry::Remove(Key key) {
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return;
  for (const std::string& name : entry->second.names) {
    const auto [begin, end] = by_name_.equal_range(name);
    for (auto at = begin; at != end;) at = at->second == key ? by_name_.erase(at) : std::next(at);
  }
  entries_.erase(entry);
}

size_t RequestRegistry::Cancel(std::string_view name, const Caller& caller) const {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = by_name_.equal_range(name);
    for (auto at = begin; at != end; ++at) {
      const Entry& entry = entries_.at(at->second);
      if (caller.MayTouch(entry.owner)) calls.push_back(entry.cancel);
    }
  }
  for (const auto& cancel : calls) cancel();
  return calls.size();
}

size_t RequestRegistry::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace tessera::server
