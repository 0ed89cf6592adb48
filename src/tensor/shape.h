// SPDX-License-Identifier: Apache-2.0
//
// Shape: dimensions of a tensor, outermost first, row-major, whatever order the file used. A scalar
// has no dimensions and one element.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace tessera::tensor {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  std::span<const int64_t> dims() const { return dims_; }
  /// Size of the innermost dimension; 1 for a scalar.
  int64_t columns() const { return dims_.empty() ? 1 : dims_.back(); }
  /// Elements / columns; the product of the outer dimensions.
  int64_t rows() const;
  /// Product of the dimensions. Shapes from files are checked by Elements() first.
  int64_t elements() const;
  /// kInvalidArgument for a negative dimension or a product beyond 2^63 - 1.
  Result<int64_t> Elements() const;
  /// "[2,512]".
  std::string ToString() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> dims_;
};

/// [1,n] and [n] hold the same: dimensions of one before the others are not counted.
bool SameButForLeadingOnes(const Shape& a, const Shape& b);

}  // namespace tessera::tensor
