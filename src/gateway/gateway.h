// SPDX-License-Identifier: Apache-2.0
//
// Gateway: the control plane of one machine, whole: store, launcher, controller, and the HTTP
// server before them. Owned by one thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "gateway/control/controller.h"
#include "gateway/models/model_table.h"
#include "net/server.h"

namespace tessera::gateway {

struct GatewayOptions {
  net::ServerOptions http{};
  std::filesystem::path state_dir;
  std::filesystem::path program;  // `tessera`, for workers.
  ModelTableOptions models{};
  ControllerOptions control{};
  int worker_drain_seconds = 60;
  Duration hold = std::chrono::seconds(300);
};

class Gateway {
 public:
  /// Serves when it returns. Errors of the store, the models' file and the port.
  static Result<std::unique_ptr<Gateway>> Start(GatewayOptions options, const Clock& clock);
  ~Gateway();

  std::string address() const;
  /// Refuses new calls, lets open ones end, then ends the workers; at most so long.
  Status Drain(Duration timeout);

 private:
  struct Parts;
  explicit Gateway(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tessera::gateway
