// SPDX-License-Identifier: Apache-2.0
//
// TensorView: dtype, shape and bytes that somebody else owns (usually a MappedFile). Row-major and
// contiguous; quantised types are blocked along the innermost dimension.
#pragma once

#include "base/bytes.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tessera::tensor {

struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  ByteSpan bytes;
};

}  // namespace tessera::tensor
