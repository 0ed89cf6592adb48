// SPDX-License-Identifier: Apache-2.0
//
// PageHash: the name of a whole KV page beyond this process. KV is a function of everything that
// computes it and of all tokens up to the page's end, so the name is a SHA-256 chain over just
// that:
//
//   root        = H("tessera kv" identity)      what computes: model, layout, numerics
//   hash of i   = H(hash of i - 1, ids of page i as 4 bytes each, little-endian)
//
// Unlike PageKey (page_tree.h) it is trusted: who has the page of this name has this context's KV.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "base/hash.h"
#include "engine/request.h"

namespace tessera::engine {

using PageHash = Sha256::Digest;

/// The name of no context at all: the parent of first pages.
PageHash RootHash(std::string_view identity);
PageHash HashOfPage(const PageHash& parent, std::span<const TokenId> tokens);

/// For hash tables: any eight bytes of it are as good as others.
struct PageHashHasher {
  size_t operator()(const PageHash& hash) const {
    size_t value = 0;
    std::memcpy(&value, hash.data(), sizeof value);
    return value;
  }
};

}  // namespace tessera::engine
