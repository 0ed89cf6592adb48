// SPDX-License-Identifier: Apache-2.0
//
// Sums over two runs of one text: logits position by position, keys and values layer by layer. A
// plain value; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bundle/parity.h"

namespace tessera::certify {

/// -log softmax(logits)[token], in double.
double NegativeLogLikelihood(std::span<const float> logits, int32_t token);

class Comparison {
 public:
  /// The same position of both runs; `next` is the token that follows it in the text.
  void AddPosition(std::span<const float> original, std::span<const float> program, int32_t next);
  /// The same page of both: float16 keys and values, `layers` equal parts one after the other.
  void AddPage(std::span<const std::byte> original, std::span<const std::byte> program,
               int64_t layers);

  int64_t positions() const { return positions_; }
  double program_nll() const { return program_nll_ / Count(); }
  /// Requires a position and a page. Values that are not finite stay so.
  bundle::Parity::Comparison Finish() const;

 private:
  double Count() const { return static_cast<double>(positions_); }

  int64_t positions_ = 0;
  double original_nll_ = 0;
  double program_nll_ = 0;
  double kl_ = 0;
  int64_t same_top_ = 0;
  struct Layer {
    double difference = 0;  // Sums of squares.
    double original = 0;
  };
  std::vector<Layer> layers_;
};

}  // namespace tessera::certify
