// SPDX-License-Identifier: Apache-2.0
#include "engine/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tessera::engine {
namespace {

constexpr double kMemory = 16;   // Measurements that a cell's mean is of.
constexpr double kOutlier = 2;   // A measurement counts as at most this factor off its cell.
constexpr double kRidge = 1e-4;  // Against a and c, where the cells do not tell them from b.

}  // namespace

StepCostModel::Cell& StepCostModel::CellOf(const StepLoad& load) {
  const auto rows = static_cast<uint64_t>(std::max<int64_t>(load.rows, 1));
  const auto context = static_cast<uint64_t>(load.context) / rows;
  const auto row = std::min<size_t>(static_cast<size_t>(std::bit_width(rows)) - 1, kRowCells - 1);
  const auto column = std::min<size_t>(static_cast<size_t>(std::bit_width(context >> 6) + 1) / 2,
                                       kContextCells - 1);
  return cells_[row * kContextCells + column];
}

void StepCostModel::Observe(const StepLoad& load, Duration took) {
  if (load.rows <= 0 || took <= Duration::zero()) return;
  Cell& cell = CellOf(load);
  double seconds = tessera::Seconds(took);
  const auto rows = static_cast<double>(load.rows);
  const auto context = static_cast<double>(load.context);
  if (cell.weight >= 1) {
    // Of the expected time of this very load: the cell's mean, moved along the fit.
    const double fitted = Seconds(cell.rows, cell.context);
    const double expected =
        fitted > 0 ? cell.seconds * Seconds(rows, context) / fitted : cell.seconds;
    seconds = std::clamp(seconds, expected / kOutlier, expected * kOutlier);
  }
  cell.weight = std::min(cell.weight + 1, kMemory);
  const double share = 1 / cell.weight;
  cell.rows += (rows - cell.rows) * share;
  cell.context += (context - cell.context) * share;
  cell.seconds += (seconds - cell.seconds) * share;
  ++observed_;
  Fit();
}

void StepCostModel::Fit() {
  // Of all choices of parameters without a negative one, the first that has none is the best:
  // dropping a parameter never makes the error smaller.
  constexpr std::array<std::array<bool, 3>, 4> kChoices = {
      {{true, true, true}, {true, true, false}, {false, true, true}, {false, true, false}}};
  for (const auto& used : kChoices) {
    theta_ = Solve(used);
    if (std::ranges::all_of(theta_, [](double value) { return value >= 0; })) return;
  }
}

StepCostModel::Vector StepCostModel::Solve(const std::array<bool, 3>& used) const {
  // Normal equations of relative errors, scaled to like sizes.
  constexpr Vector kScale = {1, 1.0 / 64, 1.0 / 65536};
  std::array<std::array<double, 4>, 3> m{};
  for (const Cell& cell : cells_) {
    if (cell.weight == 0) continue;
    const Vector x = {kScale[0] / cell.seconds, cell.rows * kScale[1] / cell.seconds,
                      cell.context * kScale[2] / cell.seconds};
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) m[i][j] += cell.weight * x[i] * x[j];
      m[i][3] += cell.weight * x[i];
    }
  }
  for (const size_t i : {0u, 2u}) m[i][i] *= 1 + kRidge;
  for (size_t i = 0; i < 3; ++i) {
    if (used[i]) continue;
    for (size_t j = 0; j < 3; ++j) m[i][j] = m[j][i] = 0;
    m[i][i] = 1;
    m[i][3] = 0;
  }
  // Gauss, with the matrix positive definite but for what the cells cannot tell.
  for (size_t i = 0; i < 3; ++i) {
    if (m[i][i] <= 0) continue;
    for (size_t k = 0; k < 3; ++k) {
      if (k == i) continue;
      const double factor = m[k][i] / m[i][i];
      for (size_t j = i; j < 4; ++j) m[k][j] -= factor * m[i][j];
    }
  }
  Vector theta{};
  for (size_t i = 0; i < 3; ++i) theta[i] = m[i][i] > 0 ? m[i][3] / m[i][i] * kScale[i] : 0;
  return theta;
}

double StepCostModel::Seconds(double rows, double context) const {
  return theta_[0] + theta_[1] * rows + theta_[2] * context;
}

Duration StepCostModel::Predict(const StepLoad& load) const {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
      Seconds(static_cast<double>(load.rows), static_cast<double>(load.context))));
}

int64_t StepCostModel::RowsWithin(Duration target, const StepLoad& load, int64_t start,
                                  int64_t limit) const {
  if (!is_known()) return limit;
  int64_t low = 0, high = limit;  // `low` rows fit; more than `high` are not looked at.
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    StepLoad with = load;
    with.Add(middle, start);
    if (Predict(with) <= target) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace tessera::engine
