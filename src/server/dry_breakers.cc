// SPDX-License-Identifier: Apache-2.0
#include "server/dry_breakers.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::server {
namespace {

constexpr size_t kSetsKept = 8;  // A vocabulary of 128k tokens is 16 KiB a set.

}  // namespace

std::span<const std::string> DefaultDryBreakers() {
  static const std::string kDefaults[] = {"\n", ":", "\"", "*"};
  return kDefaults;
}

Result<std::shared_ptr<const std::vector<bool>>> DryBreakers::Find(
    const text::Tokenizer& tokenizer, std::vector<std::string> strings) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, table] : recent_)
      if (known == strings) return table;
  }
  auto table = std::make_shared<std::vector<bool>>(static_cast<size_t>(tokenizer.vocab_size()));
  std::vector<bool> found(strings.size(), false);
  for (size_t id = 0; id < table->size(); ++id) {
    const std::string bytes = tokenizer.TokenBytes(static_cast<text::TokenId>(id));
    for (size_t i = 0; i < strings.size(); ++i) {
      if (bytes.find(strings[i]) == std::string::npos) continue;
      (*table)[id] = true;
      found[i] = true;
    }
  }
  const auto missing = std::ranges::find(found, false);
  // Of the defaults, which nobody asked for, a small vocabulary may lack some.
  if (missing != found.end() && !std::ranges::equal(strings, DefaultDryBreakers()))
    return Fail(InvalidArgument(fmt::format(
        "no token of this model contains \"{:.50}\"; a breaker must lie within one token",
        strings[static_cast<size_t>(missing - found.begin())])));
  const std::lock_guard lock(mutex_);
  if (recent_.size() >= kSetsKept) recent_.erase(recent_.begin());
  recent_.emplace_back(std::move(strings), table);
  return table;
}

}  // namespace tessera::server
