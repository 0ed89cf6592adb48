// SPDX-License-Identifier: Apache-2.0
//
// ServiceControl: what handlers may ask of the service that they are a part of. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>

#include "base/clock.h"
#include "base/status.h"

namespace tessera::server {

/// What a reload read.
struct ReloadReport {
  size_t keys = 0;
  bool has_key_file = false;
  bool has_certificate = false;
};

class ServiceControl {
 public:
  virtual ~ServiceControl() = default;
  /// Reads the key file, the certificate and the client CA again. All of it or nothing: an error
  /// says what is wrong with which file, and everything stays as it was. Open connections and
  /// running requests go on either way.
  virtual Result<ReloadReport> Reload() = 0;
  /// From now on no request is taken. `done` hears once, on another thread, when the running ones
  /// have finished (ok) or were cut after `patience` (kDeadlineExceeded). Asked again meanwhile,
  /// the first patience counts. kResourceExhausted when the system gives no thread.
  virtual Status StartDrain(Duration patience, std::function<void(const Status&)> done) = 0;
};

}  // namespace tessera::server
