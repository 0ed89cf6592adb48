// SPDX-License-Identifier: Apache-2.0
//
// safetensors writer: tensors by view, in the order given. Equal bytes to the reference library's
// for tensors in its order. The header is made in memory, tensor bytes stream from where they are.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tensor/tensor_view.h"

namespace tessera::formats::safetensors {

struct WriteTensor {
  std::string name;
  tensor::TensorView view;  // Must hold exactly the bytes of its dtype and shape.
};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

/// The whole file in memory. `metadata` becomes __metadata__ when not empty. kInvalidArgument for
/// duplicate names, sizes that do not match and types that safetensors has no name for.
Result<std::string> Make(const TextPairs& metadata, std::span<const WriteTensor> tensors);

/// The same into a file, streaming; complete when it returns success.
Status Write(const std::filesystem::path& path, const TextPairs& metadata,
             std::span<const WriteTensor> tensors);

/// The text of a model.safetensors.index.json: rows of tensor name and shard file name.
std::string MakeShardIndex(const TextPairs& weight_map, uint64_t total_bytes);

}  // namespace tessera::formats::safetensors
