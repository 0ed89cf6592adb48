// SPDX-License-Identifier: Apache-2.0
#include "cli/endpoint_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cli/progress.h"
#include "cli/terminal.h"

#include "base/utf8.h"
#include "formats/printable.h"

namespace tessera::cli {
namespace {

const json::Value* At(const json::Object& object, std::string_view path) {
  const json::Object* place = &object;
  for (;;) {
    const size_t dot = path.find('.');
    const json::Value* value = json::Find(*place, path.substr(0, dot));
    if (value == nullptr || dot == std::string_view::npos) return value;
    if (!value->is_object()) return nullptr;
    place = &value->get_object();
    path.remove_prefix(dot + 1);
  }
}

std::optional<double> NumberAt(const json::Object& object, std::string_view path) {
  const json::Value* value = At(object, path);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

Tone ToneOf(std::string_view status) {
  if (status == "READY" || status == "ready") return Tone::kGood;
  if (status == "UPDATE_FAILED" || status == "failed") return Tone::kBad;
  if (status.empty() || status == "PAUSED") return Tone::kPlain;
  return Tone::kBusy;
}

/// "1 of 1", "0 of 0..4": that serve, of those that there may be.
std::string WorkersText(const json::Object& record) {
  const std::string state = "spec.deployment_state.";
  const std::string ready = TextAt(record, state + "available_workers");
  const std::string low = TextAt(record, state + "min_workers");
  const std::string high = TextAt(record, state + "max_workers");
  if (low.empty() || high.empty()) return ready;
  return low == high ? fmt::format("{} of {}", ready, low)
                     : fmt::format("{} of {}..{}", ready, low, high);
}

std::string Lines(const json::Value* list) {
  std::string text;
  if (list == nullptr || !list->is_array()) return text;
  for (const json::Value& entry : list->get_array()) {
    const auto* line = entry.if_string();
    text += (text.empty() ? "" : "\n") +
            (line != nullptr ? std::string(*line) : json::Serialize(entry));
  }
  return text;
}

/// Objects without members say nothing.
std::string Compact(const json::Value* value) {
  if (value == nullptr || (value->is_object() && value->get_object().empty())) return {};
  return json::Serialize(*value);
}

}  // namespace

std::string TextAt(const json::Object& object, std::string_view path) {
  const json::Value* value = At(object, path);
  if (value == nullptr) return {};
  const auto* text = value->if_string();
  return text != nullptr ? std::string(*text) : json::Serialize(*value);
}

std::string ShortTime(std::string_view iso) {
  constexpr std::string_view kUtc = "+00:00";
  if (iso.size() != 25 || !iso.ends_with(kUtc) || iso[10] != 'T') return std::string(iso);
  return fmt::format("{} {}Z", iso.substr(0, 10), iso.substr(11, 8));
}

std::string EndpointTable(const json::Array& endpoints, const TableStyle& style) {
  TextTable table({{"name"},
                   {"model"},
                   {"status"},
                   {"ready"},
                   {"workers"},
                   {"waiting", true},
                   {"reason", false, true}});
  for (const json::Value& value : endpoints) {
    const auto* record = value.if_object();
    if (record == nullptr) continue;
    const std::string status = TextAt(*record, "status");
    const std::string ready = TextAt(*record, "ready");
    table.Add({{TextAt(*record, "name")},
               {TextAt(*record, "model_name")},
               {status, ToneOf(status)},
               {ready == "true"    ? "yes"
                : ready == "false" ? "no"
                                   : ready},
               {WorkersText(*record)},
               {TextAt(*record, "spec.num_queued_items")},
               {TextAt(*record, "status_reason")}});
  }
  return table.Render(style);
}

std::string EndpointFacts(const json::Object& record, const TableStyle& style) {
  std::vector<std::pair<std::string_view, Cell>> facts;
  const auto add = [&](std::string_view name, std::string text, Tone tone = Tone::kPlain) {
    if (!text.empty()) facts.push_back({name, {std::move(text), tone}});
  };
  const std::string status = TextAt(record, "status");
  add("name", TextAt(record, "name"));
  add("model", TextAt(record, "model_name"));
  add("checkpoint", TextAt(record, "checkpoint_path"));
  add("status", status, ToneOf(status));
  add("reason", TextAt(record, "status_reason"));
  add("ready", TextAt(record, "ready"));
  add("workers", WorkersText(record));
  add("calls a worker", TextAt(record, "spec.deployment_state.per_worker"));
  add("calls waiting", TextAt(record, "spec.num_queued_items"));
  add("progress", Compact(At(record, "progress")));
  add("warnings", Lines(At(record, "warnings")), Tone::kBusy);
  add("owner", TextAt(record, "spec.created_by"));
  add("public", TextAt(record, "spec.public_inference"));
  add("created", ShortTime(TextAt(record, "spec.created_at")));
  add("changed", ShortTime(TextAt(record, "spec.last_updated_at")));
  add("labels", Compact(At(record, "spec.labels")));
  add("metadata", Compact(At(record, "spec.metadata")));
  add("resources", Compact(At(record, "spec.resource_state")));
  add("options", Compact(At(record, "engine_options")));
  add("id", TextAt(record, "id"));
  return FactLines(facts, style);
}

std::string RowTable(const json::Array& rows, std::span<const RowColumn> columns,
                     const TableStyle& style) {
  std::vector<RowColumn> shown;
  for (const RowColumn& column : columns)
    if (std::ranges::any_of(rows, [&](const json::Value& row) {
          return row.is_object() && At(row.get_object(), column.member) != nullptr;
        }))
      shown.push_back(column);
  if (shown.empty()) return {};
  std::vector<Column> titles;
  for (const RowColumn& column : shown)
    titles.push_back({column.member, column.is_right, column.gives_way});
  TextTable table(std::move(titles));
  for (const json::Value& row : rows) {
    if (!row.is_object()) continue;
    std::vector<Cell> cells;
    for (const RowColumn& column : shown) {
      const std::string text = ShortTime(TextAt(row.get_object(), column.member));
      cells.push_back({text, column.member == "state" ? ToneOf(text) : Tone::kPlain});
    }
    table.Add(std::move(cells));
  }
  return table.Render(style);
}

std::string WorkerTable(const json::Array& workers, const TableStyle& style) {
  constexpr RowColumn kColumns[] = {{"id"},
                                    {"pid", true},
                                    {"pod"},
                                    {"state"},
                                    {"since"},
                                    {"version", true},
                                    {"running", true},
                                    {"waiting", true},
                                    {"kv_usage", true}};
  return RowTable(workers, kColumns, style);
}

std::string EventLine(const json::Object& event) {
  const std::string actor = TextAt(event, "actor");
  return fmt::format("{}  {:<16}  {}{}\n", ShortTime(TextAt(event, "at")),
                     formats::Printable(TextAt(event, "kind")),
                     formats::Printable(TextAt(event, "text")),
                     actor.empty() ? "" : fmt::format(" (by {})", formats::Printable(actor)));
}

WaitState WaitStateOf(const json::Object& record) {
  const std::string status = TextAt(record, "status");
  if (status == "UPDATE_FAILED") return WaitState::kFailed;
  return status == "READY" && TextAt(record, "ready") == "true" ? WaitState::kReady
                                                                : WaitState::kGoing;
}

std::string WaitLine(const json::Object& record, int columns) {
  constexpr int kCells = 24;
  const auto room = static_cast<size_t>(std::max(columns - 1, 0));
  const std::string name = TextAt(record, "name");
  const auto percent = NumberAt(record, "progress.percent");
  std::string line;
  if (percent.has_value()) {
    const double share = std::clamp(*percent / 100, 0.0, 1.0);
    const std::string stage = TextAt(record, "progress.stage");
    const auto left = NumberAt(record, "progress.eta_seconds");
    line = fmt::format(
        "{} {} {}{}{:.0f}%{}", name, ProgressBar(share, kCells), stage, stage.empty() ? "" : " ",
        share * 100,
        left.has_value() && *left >= 0 ? fmt::format(", {} left", HumanDuration(*left)) : "");
  } else {
    line = fmt::format("{}: {}", name, TextAt(record, "status_reason"));
  }
  line = formats::Printable(line);
  size_t bytes = 0;
  for (size_t i = 0; i < room && bytes < line.size(); ++i)
    bytes += Utf8CharacterBytes(std::string_view(line).substr(bytes));
  return line.substr(0, bytes);
}

}  // namespace tessera::cli
