// SPDX-License-Identifier: Apache-2.0
//
// The file of one KV page in a page store. Bytes from outside: a disk may be full of anything.
//
//   offset  bytes  what (integers little-endian)
//        0      8  "tskvpage"
//        8      4  format version, 1
//       12      4  bytes before the payload, 128
//       16     32  root hash: what computed it (page_hash.h)
//       48     32  hash of the page
//       80      8  bytes of the payload
//       88     32  SHA-256 of bytes [0, 88) and of the payload
//      120      8  zeros
//      128         payload: the page as it lies in KV memory
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/status.h"
#include "engine/page_hash.h"

namespace tessera::engine {

inline constexpr size_t kKvPageHeaderBytes = 128;
using KvPageHeader = std::array<std::byte, kKvPageHeaderBytes>;

/// What a file has to be.
struct KvPageName {
  PageHash root;
  PageHash hash;
  uint64_t payload_bytes = 0;
};

/// The header of a file with this payload; `name.payload_bytes` is its size.
KvPageHeader EncodeKvPageHeader(const KvPageName& name, ByteSpan payload);

/// kDataLoss (one line: what is wrong) unless header and payload are exactly a page of that name.
Status CheckKvPage(const KvPageHeader& header, ByteSpan payload, const KvPageName& name);

}  // namespace tessera::engine
