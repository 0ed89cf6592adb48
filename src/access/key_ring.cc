// SPDX-License-Identifier: Apache-2.0
#include "access/key_ring.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "access/key_file.h"
#include "base/check.h"

namespace tessera::access {
namespace {

/// Takes the same time wherever the first difference is. Both are digests.
bool EqualDigests(std::string_view a, std::string_view b) {
  TESSERA_CHECK(a.size() == b.size());
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace

Result<std::unique_ptr<KeyRing>> KeyRing::Make(std::vector<ApiKey> fixed, std::string key_file,
                                               const Clock& clock) {
  std::unique_ptr<KeyRing> ring(new KeyRing(std::move(fixed), std::move(key_file), clock));
  TESSERA_ASSIGN_OR_RETURN(std::vector<ApiKey> keys, ring->Load());
  ring->Use(std::move(keys));
  return ring;
}

Result<std::vector<ApiKey>> KeyRing::Load() const {
  std::vector<ApiKey> keys = fixed_;
  if (has_key_file()) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<ApiKey> more, ReadKeyFile(key_file_));
    std::ranges::move(more, std::back_inserter(keys));
  }
  TESSERA_RETURN_IF_ERROR(CheckUnique(keys));
  return keys;
}

void KeyRing::Use(std::vector<ApiKey> keys) {
  const std::lock_guard lock(mutex_);
  auto next = std::make_shared<KeySet>();
  for (ApiKey& key : keys) {
    const auto old = std::ranges::find_if(
        *keys_, [&](const Entry& entry) { return entry.key->name == key.name; });
    auto usage =
        old != keys_->end() ? old->usage : std::make_shared<KeyUsage>(++last_client_, clock_);
    usage->SetKey(key);
    next->push_back({std::make_shared<const ApiKey>(std::move(key)), std::move(usage)});
  }
  keys_ = std::move(next);
}

std::shared_ptr<const KeyRing::KeySet> KeyRing::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

std::optional<KeyRing::Entry> KeyRing::Find(std::string_view key) const {
  const std::string digest = DigestOf(key);
  const std::shared_ptr<const KeySet> known = keys();
  const Entry* found = nullptr;
  for (const Entry& entry : *known)  // To the end, also when it is found.
    if (EqualDigests(entry.key->digest, digest)) found = &entry;
  return found == nullptr ? std::nullopt : std::optional<Entry>(*found);
}

bool KeyRing::IsExpired(const ApiKey& key) const {
  return key.expires.has_value() && clock_.UnixSeconds() >= *key.expires;
}

}  // namespace tessera::access
