// SPDX-License-Identifier: Apache-2.0
//
// Patience: waits between tries of a question that somebody waits for, doubling, within
// Settings::api_patience in all. Belongs to one thread.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "hub/settings.h"

namespace tessera::hub {

class Patience {
 public:
  explicit Patience(const Settings& settings)
      : settings_(settings), wait_(settings.retry_wait), begin_(Clock::Real().Now()) {}

  /// Waits, at least as long as the server asked; false, at once, when that would take too long.
  bool Wait(std::optional<std::chrono::milliseconds> asked = std::nullopt);

 private:
  const Settings& settings_;
  std::chrono::milliseconds wait_;
  TimePoint begin_;
};

}  // namespace tessera::hub
