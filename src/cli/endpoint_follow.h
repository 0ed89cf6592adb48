// SPDX-License-Identifier: Apache-2.0
//
// What goes on until something has happened: waiting for an endpoint, its events, its workers'
// logs. Asks the gateway again and again; blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/gateway_client.h"

#include "base/clock.h"

namespace tessera::cli {

/// Until a call would be answered, with a bar on stderr; the last record. kDeadlineExceeded after
/// `patience`, kFailedPrecondition when the endpoint failed (with its reason), kNotFound when there
/// is none or it was deleted meanwhile. A gateway that is away for a moment is waited for.
Result<json::Object> WaitUntilReady(GatewayClient* client, std::string_view name,
                                    Duration patience);
/// Until nothing of that name is there.
Status WaitUntilGone(GatewayClient* client, std::string_view name, Duration patience);

/// Events to stdout, a line each; as JSON objects with `is_json`. With `follow` goes on until the
/// endpoint is gone.
Status PrintEvents(GatewayClient* client, std::string_view name, bool follow, bool is_json);

/// Logs of workers to stdout, each line behind its worker's id when there are several. `worker`:
/// only that one; `lines`: the last so many of each (absent: all that the gateway gives).
struct LogOptions {
  std::string worker;
  std::optional<int64_t> lines;
  bool follow = false;
};
Status PrintLogs(GatewayClient* client, std::string_view name, const LogOptions& options);

/// What `now` has behind the end of `before`, both being the last bytes of one log at two times;
/// all of `now` when they share nothing. Pure.
std::string_view NewPart(std::string_view before, std::string_view now);

/// The last `lines` lines. Pure.
std::string_view LastLines(std::string_view text, int64_t lines);

}  // namespace tessera::cli
