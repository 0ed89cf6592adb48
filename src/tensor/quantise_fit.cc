// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantise_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/topology.h"
#include "tensor/convert.h"
#include "tensor/quantise_fit_args.h"

namespace tessera::tensor {
namespace {

bool HasAvx2() {
  static const bool has = ReadIsa().avx2;
  return has;
}

Status CheckValues(std::span<const float> row) {
  // The comparison is false for NaN.
  const auto fits = [](float value) { return std::fabs(value) <= kMaxFitMagnitude; };
  bool all_fit = true;  // Without a way out, so that the loop is a few vector instructions.
  for (const float value : row) all_fit &= fits(value);
  if (all_fit) return {};
  const auto bad = std::find_if_not(row.begin(), row.end(), fits);
  return InvalidArgument(
      fmt::format("element {} is {}, expected a finite value of at most {} to quantise",
                  bad - row.begin(), *bad, kMaxFitMagnitude));
}

}  // namespace

bool CanFit(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
    case DType::kQ6_K:
    case DType::kQ5_0:
    case DType::kQ4_K:
    case DType::kQ4_1:
    case DType::kQ4_0:
      return true;
    default:
      return false;
  }
}

Status QuantiseFit(DType dtype, std::span<const float> row, std::span<const float> importance,
                   std::span<std::byte> out, FitPath path) {
  TESSERA_CHECK(CanFit(dtype));
  TESSERA_CHECK(importance.empty() || importance.size() == row.size());
  const Result<uint64_t> bytes = RowBytes(dtype, row.size());
  TESSERA_CHECK(bytes.has_value() && *bytes == out.size());
  TESSERA_RETURN_IF_ERROR(CheckValues(row));
  const FitArgs args{dtype, row.data(), importance.empty() ? nullptr : importance.data(),
                     std::ssize(row), reinterpret_cast<uint8_t*>(out.data())};
  if (path == FitPath::kFastest && HasAvx2()) {
    FitRowAvx2(args);
  } else {
    FitRowPortable(args);
  }
  return {};
}

double FitError(DType dtype, std::span<const float> row, std::span<const float> importance,
                std::span<const std::byte> encoded) {
  std::vector<float> decoded(row.size());
  TESSERA_CHECK(ToFloat(dtype, encoded, decoded).ok());
  const size_t group = dtype == DType::kQ6_K ? 16 : 32;
  double error = 0;
  for (size_t begin = 0; begin < row.size(); begin += group) {
    double mean = 0;
    for (size_t i = begin; i < begin + group; ++i) mean += std::fabs(row[i]);
    mean /= static_cast<double>(group);
    for (size_t i = begin; i < begin + group; ++i) {
      const double weight =
          (mean + std::fabs(row[i])) * (importance.empty() ? 1.0 : double{importance[i]});
      const double e = double{row[i]} - double{decoded[i]};
      error += weight * e * e;
    }
  }
  return error;
}

}  // namespace tessera::tensor
