// SPDX-License-Identifier: Apache-2.0
#include "cli/endpoint_follow.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <utility>

#include "cli/endpoint_report.h"
#include "cli/terminal.h"

#include "formats/printable.h"

namespace tessera::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookFirst{50}, kLookLast{1000}, kFollowEvery{500};
constexpr Duration kLineEvery = std::chrono::seconds(10);
// A gateway that is started again answers within a second.
constexpr Duration kGatewayPatience = std::chrono::seconds(15);
// Enough of a log's end to find it again in a later one.
constexpr size_t kAnchorBytes = 4096;

void Pause(milliseconds time) {
  poll(nullptr, 0, static_cast<int>(time.count()));
}

/// On a terminal one line that changes; in a log a line when it says something new, or at times.
class WaitShow {
 public:
  ~WaitShow() { Erase(); }
  void Show(const json::Object& record) {
    if (!StderrIsTerminal()) {
      const std::string reason = TextAt(record, "progress.stage") + TextAt(record, "status_reason");
      const TimePoint now = Clock::Real().Now();
      if (reason == said_ && now - said_at_ < kLineEvery) return;
      said_ = reason;
      said_at_ = now;
      Note("{}\n", WaitLine(record, 200));
      return;
    }
    Note("\r\033[K{}", WaitLine(record, StderrColumns()));
    std::fflush(stderr);
    has_line_ = true;
  }
  void Erase() {
    if (has_line_) WriteStderr("\r\033[K");
    has_line_ = false;
  }

 private:
  bool has_line_ = false;
  std::string said_;
  TimePoint said_at_{};
};

/// Asks for the record until it answers, over a gateway's restart.
class RecordReader {
 public:
  RecordReader(GatewayClient* client, std::string_view name) : client_(client), name_(name) {}

  /// Nothing while the gateway is away.
  Result<std::optional<json::Object>> Next() {
    auto record = client_->CallEndpoint("GET", name_);
    const TimePoint now = Clock::Real().Now();
    if (record.has_value()) {
      answered_ = now;
      return std::optional(*std::move(record));
    }
    const bool may_return = record.error().code() == Code::kUnavailable && answered_.has_value() &&
                            now - *answered_ < kGatewayPatience;
    if (may_return) return std::optional<json::Object>();
    if (record.error().code() == Code::kNotFound && answered_.has_value())
      return Fail(NotFound(fmt::format("endpoint \"{}\" was deleted meanwhile", name_)));
    return Fail(record.error());
  }

 private:
  GatewayClient* client_;
  std::string name_;
  std::optional<TimePoint> answered_;
};

const json::Array& ListOf(const json::Object& answer, std::string_view member) {
  static const json::Array kNone;
  const json::Value* list = json::Find(answer, member);
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

Status PrintEvent(const json::Object& event, bool is_json) {
  return WriteStdout(is_json ? json::Serialize(event) + "\n" : EventLine(event));
}

Status PrintLines(std::string_view text, std::string_view prefix) {
  std::string shown;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    shown += fmt::format("{}{}\n", prefix, formats::Printable(text.substr(0, end), 1 << 20));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return WriteStdout(shown);
}

bool IsGone(const Status& status) {
  return status.code() == Code::kNotFound;
}

}  // namespace

Result<json::Object> WaitUntilReady(GatewayClient* client, std::string_view name,
                                    Duration patience) {
  const TimePoint begin = Clock::Real().Now();
  RecordReader reader(client, name);
  WaitShow show;
  std::string reason = "nothing is known yet";
  for (milliseconds pause = kLookFirst;; pause = std::min(2 * pause, kLookLast)) {
    TESSERA_ASSIGN_OR_RETURN(auto record, reader.Next());
    if (record.has_value()) {
      reason = TextAt(*record, "status_reason");
      const WaitState state = WaitStateOf(*record);
      if (state == WaitState::kReady) return *std::move(record);
      if (state == WaitState::kFailed)
        return Fail(FailedPrecondition(fmt::format("endpoint \"{}\" failed: {}", name, reason)));
      show.Show(*record);
    }
    if (Clock::Real().Now() - begin >= patience)
      return Fail(DeadlineExceeded(fmt::format("endpoint \"{}\" is not ready after {}: {}", name,
                                               HumanDuration(Seconds(patience)), reason)));
    Pause(std::min(pause, std::chrono::ceil<milliseconds>(patience)));
  }
}

Status WaitUntilGone(GatewayClient* client, std::string_view name, Duration patience) {
  const TimePoint begin = Clock::Real().Now();
  RecordReader reader(client, name);
  for (milliseconds pause = kLookFirst;; pause = std::min(2 * pause, kLookLast)) {
    const auto record = reader.Next();
    if (!record.has_value()) return IsGone(record.error()) ? Status() : record.error();
    if (Clock::Real().Now() - begin >= patience)
      return DeadlineExceeded(fmt::format("endpoint \"{}\" is still there after {}", name,
                                          HumanDuration(Seconds(patience))));
    Pause(pause);
  }
}

Status PrintEvents(GatewayClient* client, std::string_view name, bool follow, bool is_json) {
  constexpr int64_t kPage = 1000;
  int64_t last = 0;
  for (bool was_there = false;; was_there = true) {
    const auto answer =
        client->CallEndpoint("GET", name, fmt::format("/events?after={}&limit={}", last, kPage));
    // Its events go with it.
    if (!answer.has_value()) return was_there && IsGone(answer.error()) ? Status() : answer.error();
    const json::Array& events = ListOf(*answer, "events");
    for (const json::Value& event : events) {
      if (!event.is_object()) continue;
      TESSERA_ASSIGN_OR_RETURN(last, json::GetInt(event.get_object(), "id", last));
      TESSERA_RETURN_IF_ERROR(PrintEvent(event.get_object(), is_json));
    }
    if (static_cast<int64_t>(events.size()) >= kPage) continue;
    if (!follow) return {};
    Pause(kFollowEvery);
  }
}

std::string_view NewPart(std::string_view before, std::string_view now) {
  if (now.starts_with(before)) return now.substr(before.size());
  const std::string_view anchor =
      before.substr(before.size() - std::min(before.size(), kAnchorBytes));
  const size_t at = now.rfind(anchor);
  return at == std::string_view::npos ? now : now.substr(at + anchor.size());
}

std::string_view LastLines(std::string_view text, int64_t lines) {
  size_t end = text.ends_with('\n') ? text.size() - 1 : text.size();
  for (; lines > 0; --lines) {
    const size_t at = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    if (at == std::string_view::npos) return text;
    end = at;
  }
  return text.substr(std::min(end + 1, text.size()));
}

Status PrintLogs(GatewayClient* client, std::string_view name, const LogOptions& options) {
  std::map<std::string, std::string> seen;
  for (bool is_first = true;; is_first = false) {
    const auto answer = client->CallEndpoint("GET", name, "/logs");
    if (!answer.has_value()) return !is_first && IsGone(answer.error()) ? Status() : answer.error();
    const json::Array& logs = ListOf(*answer, "logs");
    bool has_worker = options.worker.empty();
    for (const json::Value& log : logs) {
      if (!log.is_object()) continue;
      const std::string worker = TextAt(log.get_object(), "worker");
      if (!options.worker.empty() && worker != options.worker) continue;
      has_worker = true;
      const std::string text = TextAt(log.get_object(), "text");
      std::string_view fresh = NewPart(seen[worker], text);
      if (is_first && options.lines.has_value()) fresh = LastLines(fresh, *options.lines);
      const bool is_alone = logs.size() == 1 || !options.worker.empty();
      TESSERA_RETURN_IF_ERROR(PrintLines(fresh, is_alone ? "" : worker + ": "));
      seen[worker] = text;
    }
    if (!has_worker && is_first)
      return NotFound(
          fmt::format("endpoint \"{}\" has no worker {}; `endpoints workers {}` lists "
                      "them",
                      name, options.worker, name));
    if (!options.follow) return {};
    Pause(kFollowEvery);
  }
}

}  // namespace tessera::cli
