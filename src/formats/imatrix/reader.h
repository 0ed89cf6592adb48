// SPDX-License-Identifier: Apache-2.0
//
// Importance matrices as llama.cpp's llama-imatrix writes them: for each matrix the mean square of
// every input, measured over some text. Both forms are read, told apart by the magic number:
//   GGUF: tensors NAME.in_sum2 (sums of squares) and NAME.counts;
//   the older one: little-endian int32 count, then for each matrix int32 length and bytes of its
//   name, int32 calls, int32 count and float32 sums of squares; then, optionally, int32 of the last
//   chunk, int32 length and bytes of the data set's name.
// Bytes from strangers: limits.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace tessera::formats::imatrix {

/// By the matrix's name as the file has it ("blk.0.attn_q.weight"): one value >= 0 for each input.
/// Matrices that were never called are left out.
using Importances = std::map<std::string, std::vector<float>, std::less<>>;

/// `path` is for messages. kDataLoss for a file that ends too early, kInvalidArgument for contents
/// that the forms forbid (values that are no finite numbers >= 0, a matrix twice, counts that do
/// not fit), kResourceExhausted past a limit. Messages name file, offset or matrix.
Result<Importances> Parse(ByteSpan bytes, const std::filesystem::path& path);

}  // namespace tessera::formats::imatrix
