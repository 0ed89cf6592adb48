// SPDX-License-Identifier: Apache-2.0
#include "engine/page_hash.h"

namespace tessera::engine {

PageHash RootHash(std::string_view identity) {
  Sha256 hash;
  hash.Update(AsBytes("tessera kv"));
  hash.Update(AsBytes(identity));
  return hash.Finish();
}

PageHash HashOfPage(const PageHash& parent, std::span<const TokenId> tokens) {
  static_assert(sizeof(TokenId) == 4);
  Sha256 hash;
  hash.Update(parent);
  hash.Update(std::as_bytes(tokens));
  return hash.Finish();
}

}  // namespace tessera::engine
