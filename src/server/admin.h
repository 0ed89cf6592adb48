// SPDX-License-Identifier: Apache-2.0
//
// Routes about the server itself: health, models, version, metrics, requests. Handlers for
// net/router.h.
#pragma once

#include <string_view>

#include "base/json.h"
#include "net/http.h"
#include "server/context.h"

namespace tessera::server {

/// 200 and no body while requests are taken and the engine moves; else 503 with the reason.
net::Response Health(const Context& context);
/// 200 as long as the process answers.
net::Response Live();
/// {"version", "model", "system_fingerprint"}.
net::Response Version(const Context& context);
net::Response Metrics(const Context& context);
/// {"object": "list", "data": [card]}.
net::Response ListModels(const Context& context);
/// The card, or 404 model_not_found.
net::Response GetModel(const Context& context, std::string_view id);
/// Ends the open requests of that name: {"id", "object", "cancelled", "count"}, or 404
/// request_not_found, also where they are another key's. Their pages are free within one step;
/// their clients get 499.
net::Response CancelRequest(const Context& context, std::string_view id, const Caller& caller);

}  // namespace tessera::server
