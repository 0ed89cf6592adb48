// SPDX-License-Identifier: Apache-2.0
//
// NPY, the file of one array (NumPy Enhancement Proposal 1 and numpy.lib.format): inputs and
// outputs of compiled functions. Stateless; any thread.
//
//   "\x93NUMPY" | version u8, u8 | length of the header, u16 (version 1) or u32 (2 and 3) |
//   header: "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 128), }" and spaces up to a
//   multiple of 64, ended by a line feed | elements, row-major
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tessera::formats::npy {

inline constexpr uint64_t kMaxHeaderBytes = 64u << 10;

/// A view of the file's bytes.
struct Array {
  tensor::DType dtype = tensor::DType::kU8;
  tensor::Shape shape;
  ByteSpan bytes;
};

/// Little-endian booleans, integers, floats of 16 to 64 bits. kDataLoss for a file cut short or no
/// NPY, kInvalidArgument for a header that says something else than described above,
/// kUnimplemented for Fortran order and other element types. `bytes` must outlive the array.
Result<Array> Read(ByteSpan bytes, std::string_view where);

/// The bytes of a file, version 1. kUnimplemented for a type that NPY has no name for.
Result<std::string> Write(tensor::DType dtype, const tensor::Shape& shape, ByteSpan elements);

}  // namespace tessera::formats::npy
