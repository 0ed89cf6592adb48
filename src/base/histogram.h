// SPDX-License-Identifier: Apache-2.0
//
// Histogram: how often values fell between given bounds. Plain values, copied as a snapshot;
// whoever shares one between threads guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// Cumulative only when exported: counts[i] holds values in (bounds[i-1], bounds[i]], the last
/// element those above every bound.
class Histogram {
 public:
  /// `bounds`: ascending, from a static table.
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1, 0) {}
  void Observe(double value) {
    const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
    ++counts_[static_cast<size_t>(bucket)];
    ++count_;
    sum_ += value;
  }
  std::span<const double> bounds() const { return bounds_; }
  std::span<const int64_t> counts() const { return counts_; }
  int64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace tessera
