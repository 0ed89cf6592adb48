// SPDX-License-Identifier: Apache-2.0
//
// A gateway's JSON about endpoints as tables and lines for people. Total: a member that is missing
// or of another type shows as nothing, since a gateway of another version may answer. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/text_table.h"

#include "base/json.h"

namespace tessera::cli {

/// The member as text: strings as they are, numbers and others as JSON, null and absent as "".
/// `path` goes down by dots: "spec.deployment_state.min_workers".
std::string TextAt(const json::Object& object, std::string_view path);

/// name, model, status, ready, workers, waiting, reason: of `model_endpoints` of a list.
std::string EndpointTable(const json::Array& endpoints, const TableStyle& style);
/// Everything of one record that has a value.
std::string EndpointFacts(const json::Object& record, const TableStyle& style);

/// A column of a table of like objects; it is left out when no row has it.
struct RowColumn {
  std::string_view member;
  bool is_right = false;
  bool gives_way = false;
};
std::string RowTable(const json::Array& rows, std::span<const RowColumn> columns,
                     const TableStyle& style);

std::string WorkerTable(const json::Array& workers, const TableStyle& style);
/// "2026-12-01 00:00:00Z  worker_ready  ...": one line.
std::string EventLine(const json::Object& event);

/// "2026-12-01T00:00:00+00:00" -> "2026-12-01 00:00:00Z"; other texts as they are.
std::string ShortTime(std::string_view iso);

/// How a wait stands: what `wait` shows.
enum class WaitState : uint8_t { kGoing, kReady, kFailed };
WaitState WaitStateOf(const json::Object& record);
/// "smol [######......] compile 45%, 12.0 s left", else "smol: status_reason", in fewer than
/// `columns` characters.
std::string WaitLine(const json::Object& record, int columns);

}  // namespace tessera::cli
