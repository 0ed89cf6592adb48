// SPDX-License-Identifier: Apache-2.0
//
// Context: what all handlers share, and the few ways in which they answer. Immutable while serving.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "gateway/control/controller.h"
#include "gateway/launch/launcher.h"
#include "gateway/spec/read_spec.h"
#include "gateway/store/store.h"
#include "net/response_writer.h"
#include "net/upstream.h"

namespace tessera::gateway {

struct Context {
  Controller* controller = nullptr;
  Store* store = nullptr;
  const Launcher* launcher = nullptr;
  std::shared_ptr<net::UpstreamClient> upstream;
  Duration hold = std::chrono::seconds(300);  // A call waits so long for a worker.
  const Clock* clock = nullptr;
};

void SendJson(const net::ResponseWriter& writer, int status, const json::Object& body);
/// {"detail": ...}, with WWW-Authenticate for 401 and Retry-After for 429 and 503.
void SendError(const net::ResponseWriter& writer, const ApiError& error);

/// The body as an object under `bytes_max`: 400 says where it is no JSON, 422 that it is no object.
ApiResult<json::Object> BodyObject(const net::Request& request, uint64_t bytes_max);

/// A new uuid, version 4 (RFC 9562).
std::string NewRequestId();

}  // namespace tessera::gateway
