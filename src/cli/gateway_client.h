// SPDX-License-Identifier: Apache-2.0
//
// GatewayClient: calls to a gateway, for the verbs that are its clients, over the hub's HTTP
// client. What a gateway refuses becomes a Status that says what was wrong and what to do. Blocks;
// one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "hub/http.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// Which gateway, and who asks.
struct GatewayFlags {
  std::string url;       // Empty: $TESSERA_GATEWAY, else http://127.0.0.1:5000.
  std::string key_file;  // Empty: $TESSERA_API_KEY, else the user name kDefaultUser.
  std::string ca_file;   // PEM; empty: the system's.
};

/// What a gateway without keys takes a caller for who says nothing: as llm-engine's client does.
inline constexpr std::string_view kDefaultUser = "root";

/// --gateway, --api-key-file, --tls-ca.
void AddGatewayFlags(CLI::App* verb, GatewayFlags* flags);

class GatewayClient {
 public:
  /// kInvalidArgument for an address or key that is none; errors of reading the key's file.
  static Result<GatewayClient> Open(const GatewayFlags& flags);

  /// The object that a 200 answers with. kUnavailable: nobody listens; kUnauthenticated,
  /// kPermissionDenied, kNotFound, kInvalidArgument (which field), kResourceExhausted (429) as the
  /// gateway says. `body` null: none.
  Result<json::Object> Call(std::string_view method, const std::string& target,
                            const json::Object* body = nullptr);
  /// The same about one endpoint; `rest` follows its name: "/workers". kNotFound names the nearest.
  Result<json::Object> CallEndpoint(std::string_view method, std::string_view name,
                                    std::string_view rest = {}, const json::Object* body = nullptr);
  /// POST whose answer comes as it is made; an error of `on_body` ends it and is returned.
  Status Stream(const std::string& target, const json::Object& body,
                const std::function<Status(std::string_view)>& on_body);

  const std::string& url() const { return url_; }
  /// kNotFound that names what may have been meant, or what there is.
  Status UnknownEndpoint(std::string_view name);

 private:
  GatewayClient(std::unique_ptr<hub::Http> http, std::string url, std::string key);
  Result<hub::HttpHead> Send(std::string_view method, const std::string& target,
                             const json::Object* body, const hub::HttpSink& sink);
  Status Refusal(const hub::HttpHead& head) const;

  std::unique_ptr<hub::Http> http_;
  std::string url_;  // Without a slash at the end.
  std::string key_;
};

/// The text of a refusal: `detail` of {"detail": ...}, a list of it as "min_workers: Input should
/// be ..."; else the body itself, cut. Pure.
std::string DetailText(std::string_view body);

/// "no endpoint is named ..." with up to three of `names` that are near, else some of them. Pure.
std::string UnknownEndpointText(std::string_view name, std::vector<std::string> names);

}  // namespace tessera::cli
