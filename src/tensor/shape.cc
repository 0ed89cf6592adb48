// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::tensor {

int64_t Shape::rows() const {
  int64_t product = 1;
  for (size_t axis = 0; axis + 1 < dims_.size(); ++axis) product *= dims_[axis];
  return product;
}

int64_t Shape::elements() const {
  return rows() * columns();
}

Result<int64_t> Shape::Elements() const {
  // A zero anywhere makes the product 0, but the others must still fit: rows() multiplies them.
  int64_t product = 1;
  bool empty = false;
  for (const int64_t dim : dims_) {
    if (dim < 0)
      return Fail(InvalidArgument(fmt::format("shape {} has a negative dimension", ToString())));
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, dim, &product)) {
      return Fail(
          InvalidArgument(fmt::format("shape {} has more than 2^63 - 1 elements", ToString())));
    }
  }
  return empty ? 0 : product;
}

std::string Shape::ToString() const {
  return fmt::format("[{}]", fmt::join(dims_, ","));
}

namespace {

std::span<const int64_t> WithoutLeadingOnes(std::span<const int64_t> dims) {
  while (dims.size() > 1 && dims.front() == 1) dims = dims.subspan(1);
  return dims;
}

}  // namespace

bool SameButForLeadingOnes(const Shape& a, const Shape& b) {
  return std::ranges::equal(WithoutLeadingOnes(a.dims()), WithoutLeadingOnes(b.dims()));
}

}  // namespace tessera::tensor
