// SPDX-License-Identifier: Apache-2.0
//
// Makes the figures of a parity certificate: runs the program over a text (text.h), and the
// program of the source's own weights beside it where that fits, and compares logits, and keys and
// values of each layer.
//
// Cost: at most kMaxTokens positions, fewer for large models (kMaxMultiplyAdds); of the weights a
// layer or the head is resident at a time; logits of at most kMaxLogitBytes are held for each.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "compiler/compile.h"

namespace tessera::certify {

inline constexpr int64_t kMaxTokens = 512;
inline constexpr int64_t kMinTokens = 64;
/// Of one program over the whole text: some seconds on two cores.
inline constexpr int64_t kMaxMultiplyAdds = int64_t{300} << 30;
inline constexpr int64_t kMaxLogitBytes = int64_t{128} << 20;

/// Positions to score: of a text of `text_tokens` by a model of `parameters` weights and this
/// context.
int64_t TokensToScore(int64_t text_tokens, int64_t parameters, int64_t max_seq_len);

/// Empty when the original may be written and run here, else the sentence that says why not: its
/// parameters may take half of the available memory, and must leave a gigabyte of disk.
std::string WhyNotOriginal(uint64_t original_bytes, uint64_t memory_available,
                           uint64_t disk_available);

/// A compiler::CertifyFn. Errors of tokenizer, disk and runtime.
Result<bundle::Parity> Certify(const compiler::CertifyRequest& request);

}  // namespace tessera::certify
