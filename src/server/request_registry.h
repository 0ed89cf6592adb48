// SPDX-License-Identifier: Apache-2.0
//
// RequestRegistry: the requests that are open now, by name, so that another call can cancel one. A
// request has several names (the id in its answer, its X-Request-Id); clients choose the latter, so
// several requests may share one. Who began a request owns it: nobody else can tell that it is
// there. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "server/access/caller.h"

namespace tessera::server {

class RequestRegistry {
 public:
  using Key = uint64_t;

  /// `cancel` is called without a lock, on the thread of whoever cancels, any number of times, and
  /// perhaps once more after Remove has returned.
  Key Add(std::vector<std::string> names, engine::ClientId owner, std::function<void()> cancel);
  /// No effect on a key that is gone.
  void Remove(Key key);
  /// Cancels every open request of that name that `caller` may touch, and returns how many there
  /// were.
  size_t Cancel(std::string_view name, const Caller& caller) const;
  size_t size() const;

 private:
  struct Entry {
    std::vector<std::string> names;
    engine::ClientId owner = 0;
    std::function<void()> cancel;
  };

  mutable std::mutex mutex_;
  Key last_ = 0;
  std::map<Key, Entry> entries_;
  std::multimap<std::string, Key, std::less<>> by_name_;
};

}  // namespace tessera::server
