// SPDX-License-Identifier: Apache-2.0
//
// StageMarker: what the engine thread is doing and since when, for those who watch it from other
// threads. One thread enters stages, any may look.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace tessera::engine {

enum class Stage : uint8_t {
  kIdle,      // Nothing to do.
  kCommands,  // Takes in requests and cancellations.
  kPlan,      // Decides what the step computes.
  kModel,     // Runs the model.
  kDraw,      // Chooses tokens.
  kDeliver,   // Hands tokens to their sinks.
};
std::string_view StageName(Stage stage);

class StageMarker {
 public:
  void Enter(Stage stage, TimePoint now) {
    const auto ns = static_cast<uint64_t>(now.time_since_epoch().count());
    state_.store(ns << kStageBits | static_cast<uint64_t>(stage), std::memory_order_relaxed);
  }

  struct View {
    Stage stage = Stage::kIdle;
    TimePoint since{};
  };
  View Look() const {
    const uint64_t state = state_.load(std::memory_order_relaxed);
    return {static_cast<Stage>(state & ((1 << kStageBits) - 1)),
            TimePoint(Duration(static_cast<int64_t>(state >> kStageBits)))};
  }

 private:
  // In one word, so that a stage never comes with the time of another. 61 bits of nanoseconds are
  // 73 years.
  static constexpr int kStageBits = 3;
  std::atomic<uint64_t> state_{0};
};

}  // namespace tessera::engine
