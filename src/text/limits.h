// SPDX-License-Identifier: Apache-2.0
//
// Limits of text/: what hostile input may cost. Each is tested at n-1, n and n+1. Those of the
// tokenizer are enforced in textkit/src/tokenizer.rs, which repeats the numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera::text {

/// tokenizer.json; Gemma 3's, the largest we know, has 33 MB.
inline constexpr uint64_t kMaxTokenizerJsonBytes = 256ull << 20;
/// A stored tokenizer (tokenizer_table.h): about 8 MB for 128k tokens. textkit/src/stored/table.rs
/// repeats it.
inline constexpr uint64_t kMaxTokenizerTableBytes = 256ull << 20;
/// One text to encode. A context of a million tokens is about 5 MB. The pipeline keeps offsets of
/// all pieces while it works: measured, up to 200 times the text's size for a moment, usually 60
/// times.
inline constexpr uint64_t kMaxEncodeBytes = 8ull << 20;
/// Ids of one Decode().
inline constexpr uint64_t kMaxDecodeTokens = 16ull << 20;
/// One line of the JSON-lines verbs. A character takes at most six bytes of JSON ("\u0007"); an id
/// at most nine, its comma included.
inline constexpr uint64_t kMaxJsonLineBytes =
    std::max(6 * kMaxEncodeBytes, 9 * kMaxDecodeTokens) + 1024;
/// The largest token id of a vocabulary.
inline constexpr int64_t kMaxTokenId = (1 << 24) - 1;

}  // namespace tessera::text
