// SPDX-License-Identifier: Apache-2.0
//
// Relay: what a gateway that does not lead does with calls: it passes them on to the one that does,
// as they are, and the answer back as it comes. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/status.h"
#include "net/response_writer.h"
#include "net/upstream.h"

namespace tessera::gateway {

class Relay {
 public:
  static Result<std::unique_ptr<Relay>> Make();

  /// "10.0.0.5:5000" or "[::1]:5000"; nothing: calls are answered 503 until there is one.
  void SetLeader(std::optional<std::string> address);
  /// Probes are answered here; /readyz says whether there is a leader.
  void Handle(const net::Request& request, const net::ResponseWriter& writer) const;

 private:
  explicit Relay(std::unique_ptr<net::UpstreamClient> client) : client_(std::move(client)) {}

  mutable std::mutex mutex_;
  std::optional<net::UpstreamAddress> leader_;
  // Last: its calls end while the rest is there.
  const std::unique_ptr<net::UpstreamClient> client_;
};

/// Host and port of an address in digits. kInvalidArgument.
Result<net::UpstreamAddress> ReadAddress(std::string_view address);

}  // namespace tessera::gateway
