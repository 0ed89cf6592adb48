// SPDX-License-Identifier: Apache-2.0
//
// How much a test repeats. Sanitizers look for what a path does with memory and threads; the first
// turn of a loop tells them as much as the thousandth, at ten times the price of a release build.
// So a test whose full size takes seconds there names a second, smaller size with Scaled(). The
// full size always runs in the release build, and both sizes must reach the same code.
#pragma once

#include <utility>

namespace tessera::testing {

/// This build has a sanitizer (presets asan, tsan, fuzz).
inline constexpr bool kUnderSanitizers = TESSERA_UNDER_SANITIZERS;

/// `full`, or `reduced` under sanitizers.
template <class T>
constexpr T Scaled(T full, T reduced) {
  return kUnderSanitizers ? std::move(reduced) : std::move(full);
}

}  // namespace tessera::testing
