// SPDX-License-Identifier: Apache-2.0
//
// Arrays on the command line, in the syntax of IREE's tools (--input=):
//   2x3xi64=1 2 3 4 5 6    elements in order, separated by spaces or commas
//   2x3xi64=7              one value for all
//   2x3xi64                zeros
//   2x3xi64=@file.bin      the elements' bytes
//   @file.npy              shape and type from the file
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tessera::cli {

struct ModuleInput {
  tensor::DType dtype = tensor::DType::kI64;
  tensor::Shape shape;
  /// Row-major; empty: zeros, which large caches are and need no memory for.
  std::vector<std::byte> bytes;

  /// Elements of an i64 array; zeros are made.
  std::vector<int64_t> Integers() const;
};

/// Element types: i64, i32, i8, ui8, f16, bf16, f32, f64. kInvalidArgument saying what is expected;
/// kResourceExhausted for elements beyond 1 GiB.
Result<ModuleInput> ParseModuleInput(std::string_view text);

/// "1x128xi64"
std::string ModuleInputType(tensor::DType dtype, const tensor::Shape& shape);

}  // namespace tessera::cli
