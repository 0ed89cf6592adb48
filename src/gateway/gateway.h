// SPDX-License-Identifier: Apache-2.0
//
// Gateway: the control plane of one machine, whole: store, launcher, controller, and the HTTP
// server before them. Owned by one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "gateway/control/controller.h"
#include "gateway/files/file_store.h"
#include "gateway/models/model_table.h"
#include "net/router.h"
#include "net/server.h"

namespace tessera::gateway {

struct GatewayOptions {
  net::ServerOptions http{};
  std::filesystem::path state_dir;
  std::filesystem::path program;  // `tessera`, for workers.
  ModelTableOptions models{};
  ControllerOptions control{};
  FileLimits files{};
  std::filesystem::path hub_cache{};   // Of huggingface_hub, which workers download into.
  std::filesystem::path batch_root{};  // Where batches may read and write; empty: nowhere.
  /// postgres://...: state is shared with other gateways there, and one of them leads (lead/).
  /// Empty: SQLite in the state folder.
  std::string database{};
  /// Where the other gateways reach this one, "10.0.0.5:5000"; empty: where it listens.
  std::string advertise{};
  /// The database is lost: another gateway may lead by now, and this one must end. From a thread.
  std::function<void(const Status&)> on_lead_lost{};
  int worker_drain_seconds = 60;
  Duration hold = std::chrono::seconds(300);
};

class Gateway {
 public:
  /// Serves when it returns. Errors of the store, the models' file, the port and the database.
  static Result<std::unique_ptr<Gateway>> Start(GatewayOptions options, const Clock& clock);
  ~Gateway();

  std::string address() const;
  /// All that it answers: compared with openapi/operations.h by a test. Nothing while it follows
  /// another.
  std::vector<net::Router::Route> routes() const;
  /// Refuses new calls, lets open ones end, then ends the workers; at most so long.
  Status Drain(Duration timeout);

 private:
  struct Parts;  // Of a gateway that leads; one without a shared database always does.
  struct Front;  // What serves, whoever leads.
  explicit Gateway(std::unique_ptr<Front> front);
  std::unique_ptr<Front> front_;
};

}  // namespace tessera::gateway
