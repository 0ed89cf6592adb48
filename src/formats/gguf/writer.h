// SPDX-License-Identifier: Apache-2.0
//
// GGUF writer: metadata of every kind, tensors by view. The head is made in memory, tensor bytes
// stream from where they are. Equal bytes to the reference writer's for the same input.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/status.h"
#include "formats/metadata.h"
#include "tensor/tensor_view.h"

namespace tessera::formats::gguf {

struct WriteTensor {
  std::string name;
  tensor::TensorView view;  // Must hold exactly the bytes of its dtype and shape.
};

struct WriteOptions {
  uint32_t version = 3;  // Or 2, the same layout.
};

/// The whole file in memory: for tests and small files. Alignment is 32, or what the metadata says
/// in general.alignment. kInvalidArgument for what the reader would refuse: a bad alignment, sizes
/// that do not match, more than four dimensions, types that GGUF has no number for.
Result<std::string> Make(const Metadata& metadata, std::span<const WriteTensor> tensors,
                         const WriteOptions& options = {});

/// The same into a file, streaming; complete when it returns success.
Status Write(const std::filesystem::path& path, const Metadata& metadata,
             std::span<const WriteTensor> tensors, const WriteOptions& options = {});

}  // namespace tessera::formats::gguf
