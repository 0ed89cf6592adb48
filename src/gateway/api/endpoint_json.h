// SPDX-License-Identifier: Apache-2.0
//
// What is known of an endpoint -> the API's JSON, so that clients of llm-engine can read it: they
// refuse a whole list for one value that they do not know. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "gateway/control/controller.h"
#include "gateway/store/records.h"

namespace tessera::gateway {

/// `user` who asks: secrets of callbacks are for the owner alone, and without their password.
json::Object EndpointJson(const EndpointView& view, std::string_view user);
/// {id, pid, state, since, generation, running}.
json::Object WorkerJson(const WorkerView& worker);
json::Object EventJson(const EventRecord& event);

/// "2026-12-01T00:00:00+00:00".
std::string IsoTime(int64_t unix_seconds);

}  // namespace tessera::gateway
