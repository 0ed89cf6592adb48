// SPDX-License-Identifier: Apache-2.0
//
// StepCostModel: how long a step takes, learnt from steps that were taken:
//
//   cost = a + b * rows + c * context        context: positions that all rows together look at
//
// Loads of one size (rows, context of a row; in powers) share a cell that remembers its mean, so
// that many steps of one kind do not drown the few of another. A measurement moves its cell by a
// bounded factor: a page fault or a stopped process is forgotten soon, a real change is learnt. a,
// b and c are the least squares over the cells' relative errors with none of them negative; what
// the cells leave open goes to b, which makes chunks small rather than late.
//
// Plain values, one owner. It advises: no token depends on it.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace tessera::engine {

struct StepLoad {
  int64_t rows = 0;
  int64_t context = 0;

  /// `rows` more, of one sequence from position `start` on.
  void Add(int64_t rows_more, int64_t start) {
    rows += rows_more;
    context += rows_more * start + rows_more * (rows_more + 1) / 2;
  }
};

class StepCostModel {
 public:
  void Observe(const StepLoad& load, Duration took);
  bool is_known() const { return observed_ > 0; }

  Duration Predict(const StepLoad& load) const;
  /// The most rows of a prompt, from position `start` on and at most `limit`, that together with
  /// `load` are predicted to take no longer than `target`; `limit` while nothing is known.
  int64_t RowsWithin(Duration target, const StepLoad& load, int64_t start, int64_t limit) const;

  // Seconds.
  double step() const { return theta_[0]; }
  double row() const { return theta_[1]; }
  double position() const { return theta_[2]; }

 private:
  struct Cell {
    double weight = 0;  // Measurements, the older ones for less.
    double rows = 0, context = 0, seconds = 0;
  };
  using Vector = std::array<double, 3>;
  static constexpr size_t kRowCells = 14, kContextCells = 8;

  Cell& CellOf(const StepLoad& load);
  void Fit();
  /// Least squares with only the parameters of `used`.
  Vector Solve(const std::array<bool, 3>& used) const;
  double Seconds(double rows, double context) const;

  std::array<Cell, kRowCells * kContextCells> cells_;
  Vector theta_{};
  int64_t observed_ = 0;
};

}  // namespace tessera::engine
