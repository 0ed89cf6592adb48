// SPDX-License-Identifier: Apache-2.0
//
// TlsFiles: where a server's certificate is. PEM, read at start and by Server::ReloadTls.
#pragma once

#include <string>

namespace tessera::net {

struct TlsFiles {
  std::string certificate;  // Chain, leaf first.
  std::string key;          // Without a passphrase.
  /// Clients must show a certificate that one of these signed (mutual TLS). Empty: they need none.
  std::string client_ca{};
};

}  // namespace tessera::net
