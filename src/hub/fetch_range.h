// SPDX-License-Identifier: Apache-2.0
//
// FetchRange: one attempt to get one range of a file into a PartialFile, and what follows from how
// it ended. No waiting, no repeating: download.cc decides that.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hub/download.h"
#include "hub/http.h"
#include "hub/partial_file.h"

namespace tessera::hub {

enum class FetchEnd : uint8_t {
  kDone,
  kRetry,     // Something passing: try again, later.
  kRelocate,  // The place that the file's address redirected to has expired or answers nonsense.
  kChanged,   // The bytes behind the address are others than before.
  kFailed,    // Trying again would give the same.
};

struct FetchOutcome {
  FetchEnd end = FetchEnd::kDone;
  Status status;                                  // Why, unless kDone.
  uint64_t next = 0;                              // First byte of the range that is still missing.
  std::optional<std::chrono::milliseconds> wait;  // As the server asked.
  std::string location;                           // Where the bytes came from, after redirects.
};

struct FetchContext {
  const std::atomic<bool>* stop = nullptr;  // Ends the transfer with kFailed (kCancelled).
  std::function<void(uint64_t)> on_bytes;   // Body bytes, as they arrive.
};

/// `location` is where an earlier redirect led; empty: ask the file's own address.
FetchOutcome FetchRange(Http& http, const DownloadFile& file, const std::string& location,
                        ByteRange range, PartialFile& part, const FetchContext& context);

}  // namespace tessera::hub
