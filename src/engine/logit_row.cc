// SPDX-License-Identifier: Apache-2.0
#include "engine/logit_row.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "engine/logit_kernels.h"

namespace tessera::engine {

using text::TokenId;

namespace {

using kernels::kLogitBlock;
using kernels::LogitBlocks;

constexpr uint32_t BitOf(int64_t id) {
  return uint32_t{1} << (id % kLogitBlock);
}

Status CheckMaxima(std::span<const float> maxima) {
  bool is_broken = false;
  bool has_finite = false;
  for (const float max : maxima) {
    is_broken |= std::isnan(max) || max == std::numeric_limits<float>::infinity();
    has_finite |= max > -std::numeric_limits<float>::infinity();
  }
  if (is_broken) return Internal("the model produced logits that are not numbers");
  if (!has_finite) return Internal("the model left no token possible: all logits are -infinity");
  return {};
}

}  // namespace

Status LogitRow::Reset(const Logits& logits, std::span<const uint32_t> allowed) {
  values_ = logits.values;
  raw_max_ = logits.block_max;
  const auto blocks = static_cast<size_t>(LogitBlocks(size()));
  if (raw_max_.empty()) {
    own_max_.resize(blocks);
    MachineKernels().block_max(values_.data(), size(), own_max_.data());
    raw_max_ = own_max_;
  }
  TESSERA_CHECK(raw_max_.size() == blocks);
  TESSERA_RETURN_IF_ERROR(CheckMaxima(raw_max_));
  if (!allowed.empty()) Mask(allowed);
  block_max_.assign(raw_max_.begin(), raw_max_.end());
  for (const int64_t b : changed_) is_changed_[static_cast<size_t>(b)] = 0;
  changed_.clear();
  is_changed_.resize(blocks);
  return {};
}

void LogitRow::Mask(std::span<const uint32_t> allowed) {
  TESSERA_CHECK(std::ssize(allowed) >= LogitBlocks(size()));
  masked_.resize(values_.size());
  for (int64_t at = 0; at < size(); at += kLogitBlock) {
    const uint32_t word = allowed[static_cast<size_t>(at / kLogitBlock)];
    const int64_t count = std::min(kLogitBlock, size() - at);
    const float* from = values_.data() + at;
    float* to = masked_.data() + at;
    for (int64_t i = 0; i < count; ++i)
      to[i] = (word >> i) & 1 ? from[i] : -std::numeric_limits<float>::infinity();
  }
  values_ = masked_;
  own_max_.resize(raw_max_.size());
  MachineKernels().block_max(values_.data(), size(), own_max_.data());
  raw_max_ = own_max_;
}

double LogitRow::At(TokenId id) const {
  const bool is_changed = is_changed_[static_cast<size_t>(id / kLogitBlock)] & BitOf(id);
  return is_changed ? changes_[static_cast<size_t>(id)] : values_[static_cast<size_t>(id)];
}

void LogitRow::Set(TokenId id, double value) {
  changes_.resize(values_.size());
  uint32_t& bits = is_changed_[static_cast<size_t>(id / kLogitBlock)];
  if (bits == 0) changed_.push_back(id / kLogitBlock);
  bits |= BitOf(id);
  changes_[static_cast<size_t>(id)] = value;
}

void LogitRow::Load(int64_t b, double* values) const {
  const int64_t at = b * kLogitBlock;
  const int64_t count = std::min(kLogitBlock, size() - at);
  std::copy_n(values_.data() + at, count, values);
  std::fill(values + count, values + kLogitBlock, kMinusInfinity);
  for (uint32_t bits = is_changed_[static_cast<size_t>(b)]; bits != 0; bits &= bits - 1)
    values[std::countr_zero(bits)] = changes_[static_cast<size_t>(at + std::countr_zero(bits))];
}

TokenId LogitRow::FindBest() {
  double values[kLogitBlock];
  for (const int64_t b : changed_) {
    Load(b, values);
    block_max_[static_cast<size_t>(b)] = *std::max_element(values, values + kLogitBlock);
  }
  const auto best = std::ranges::max_element(block_max_);  // The first of equals.
  max_ = *best;
  if (max_ == kMinusInfinity) return -1;
  const int64_t block = best - block_max_.begin();
  Load(block, values);
  return static_cast<TokenId>(block * kLogitBlock +
                              (std::find(values, values + kLogitBlock, max_) - values));
}

void LogitRow::CopyTo(std::vector<double>* values) const {
  values->resize(block_max_.size() * kLogitBlock);
  for (int64_t b = 0; b < std::ssize(block_max_); ++b) Load(b, values->data() + b * kLogitBlock);
  values->resize(values_.size());
}

void LogitRow::Collect(double least, double scale, std::vector<Candidate>* out) const {
  double values[kLogitBlock];
  for (int64_t b = 0; b < std::ssize(block_max_); ++b) {
    const double max = block_max_[static_cast<size_t>(b)];
    if (max < least || max == kMinusInfinity) continue;
    Load(b, values);
    for (int64_t i = 0; i < kLogitBlock; ++i)
      if (values[i] >= least && values[i] != kMinusInfinity)
        out->push_back({static_cast<TokenId>(b * kLogitBlock + i), (values[i] - max_) * scale, 0});
  }
}

double LogitRow::LeastOf(int64_t count) {
  if (count > std::ssize(block_max_)) return kMinusInfinity;
  scratch_ = block_max_;
  const auto nth = scratch_.begin() + (count - 1);
  std::ranges::nth_element(scratch_, nth, std::greater<>());
  return *nth;
}

double LogitRow::Mass(double scale) {
  mass_.resize(block_max_.size());
  // Blocks with changes may reach beyond max_; theirs is computed below.
  MachineKernels().softmax_mass({.x = values_.data(),
                                 .block_max = raw_max_.data(),
                                 .count = size(),
                                 .max = max_,
                                 .scale = scale,
                                 .cut = kCut,
                                 .mass = mass_.data()});
  double values[kLogitBlock];
  for (const int64_t b : changed_) {
    Load(b, values);
    double& mass = mass_[static_cast<size_t>(b)] = 0;
    for (const double value : values) mass += std::exp((value - max_) * scale);
  }
  double sum = 0;
  for (const double mass : mass_) sum += mass;
  return sum;
}

TokenId LogitRow::FindMass(double mass, double scale) const {
  double before = 0;
  int64_t last = -1;
  for (int64_t b = 0; b < std::ssize(mass_); ++b) {
    const double here = mass_[static_cast<size_t>(b)];
    if (here <= 0) continue;
    last = b;
    if (before + here > mass) break;
    before += here;
  }
  TESSERA_CHECK(last >= 0);
  double values[kLogitBlock];
  Load(last, values);
  int64_t found = -1;
  for (int64_t i = 0; i < kLogitBlock; ++i) {
    const double p = std::exp((values[i] - max_) * scale);
    if (p <= 0) continue;
    found = i;
    before += p;
    if (before > mass) break;
  }
  TESSERA_CHECK(found >= 0);
  return static_cast<TokenId>(last * kLogitBlock + found);
}

}  // namespace tessera::engine
