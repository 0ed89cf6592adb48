// SPDX-License-Identifier: Apache-2.0
//
// A lease: this process is wanted as long as somebody holds a write lock on a file (fcntl, open
// file description locks). Looking at the lock never takes it, so that it hinders nobody who wants
// it.
#pragma once

#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/status.h"

namespace tessera::cli {

/// Without a holder for so long the lease is over: time for one that died to be started again.
inline constexpr std::chrono::seconds kLeaseGrace{30};

/// Whether somebody else holds the lock. An absent file is held by nobody.
Result<bool> IsLeaseHeld(const std::filesystem::path& path);

/// Looks every so often, and returns when nobody has held the lock for `grace`.
void AwaitLeaseEnd(const std::filesystem::path& path, Duration grace,
                   std::chrono::milliseconds look_every);

/// From a thread of its own: SIGTERM to this process when the lease is over.
Status EndWithLease(const std::filesystem::path& path);

}  // namespace tessera::cli
