// SPDX-License-Identifier: Apache-2.0
//
// Prober: asks starting workers whether they serve. A worker's /readyz answers 200 only after it
// generated a token, so that READY is never a guess.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "gateway/store/records.h"

namespace tessera::gateway {

class Prober {
 public:
  virtual ~Prober() = default;
  /// Asks until the worker is ready, then calls `on_ready` once, from any thread. Forget ends it.
  virtual void Watch(const WorkerRecord& worker, std::function<void()> on_ready) = 0;
  /// `on_ready` of this worker is not called any more once this has returned, unless it is being
  /// called right now.
  virtual void Forget(std::string_view worker_id) = 0;
};

/// Over HTTP, by net::UpstreamClient.
Result<std::unique_ptr<Prober>> MakeHttpProber();

}  // namespace tessera::gateway
