// SPDX-License-Identifier: Apache-2.0
//
// Where a server listens and its certificate: flags that the verbs with a server share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/server.h"

namespace CLI {
class App;
}

namespace tessera::cli {

struct ListenOptions {
  uint16_t port;
  std::string host = "127.0.0.1";
  std::string tls_certificate{}, tls_key{};
  std::string tls_client_ca{};  // Of verbs that have a flag for it.

  /// "https" with a certificate.
  std::string_view scheme() const { return tls_certificate.empty() ? "http" : "https"; }
};

/// --host, --port, --tls-cert and --tls-key.
void AddListenOptions(CLI::App* verb, ListenOptions* options);

/// kInvalidArgument when only a part of what TLS needs is there.
Status SetListenOptions(const ListenOptions& options, net::ServerOptions* server);

}  // namespace tessera::cli
