// SPDX-License-Identifier: Apache-2.0
#include "cli/listen_options.h"

#include <CLI/CLI.hpp>

#include "cli/validators.h"

namespace tessera::cli {

void AddListenOptions(CLI::App* verb, ListenOptions* options) {
  verb->add_option("--host", options->host, "Address to listen on")
      ->check(PlainText())
      ->capture_default_str();
  verb->add_option("--port", options->port, "Port to listen on (0 = any free one)")
      ->check(WholeNumber(0, 65535))
      ->capture_default_str();
  verb->add_option("--tls-cert", options->tls_certificate, "PEM certificate chain; serves https");
  verb->add_option("--tls-key", options->tls_key, "PEM key of the certificate");
}

Status SetListenOptions(const ListenOptions& options, net::ServerOptions* server) {
  server->host = options.host;
  server->port = options.port;
  if (options.tls_certificate.empty() != options.tls_key.empty())
    return InvalidArgument("--tls-cert and --tls-key are needed together");
  if (!options.tls_client_ca.empty() && options.tls_certificate.empty())
    return InvalidArgument("--tls-client-ca needs --tls-cert and --tls-key");
  if (!options.tls_certificate.empty())
    server->tls = net::TlsFiles{options.tls_certificate, options.tls_key, options.tls_client_ca};
  return {};
}

}  // namespace tessera::cli
