// SPDX-License-Identifier: Apache-2.0
#include "text/render_lines.h"

#include <chrono>
#include <optional>

#include "fmt/format.h"

namespace tessera::text {
namespace {

/// Reads fixed-width fields from the front of a text.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  std::optional<int> Digits(size_t count) {
    if (rest_.size() < count) return std::nullopt;
    int value = 0;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  bool Eat(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void SkipDigits() {
    while (Digits(1)) {
    }
  }

  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::optional<std::chrono::sys_days> ReadDate(Fields& in) {
  const auto year = in.Digits(4);
  if (!year || !in.Eat('-')) return std::nullopt;
  const auto month = in.Digits(2);
  if (!month || !in.Eat('-')) return std::nullopt;
  const auto day = in.Digits(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

/// "12:34[:56[.789]]" in seconds of the day.
std::optional<int> ReadTime(Fields& in) {
  const auto hour = in.Digits(2);
  if (!hour || *hour > 23 || !in.Eat(':')) return std::nullopt;
  const auto minute = in.Digits(2);
  if (!minute || *minute > 59) return std::nullopt;
  int seconds = *hour * 3600 + *minute * 60;
  if (in.Eat(':')) {
    const auto second = in.Digits(2);
    if (!second || *second > 59) return std::nullopt;
    seconds += *second;
    if (in.Eat('.')) in.SkipDigits();
  }
  return seconds;
}

/// "Z", "+02:00", "-0330" or nothing, in seconds east of UTC.
std::optional<int> ReadOffset(Fields& in) {
  if (in.done() || in.Eat('Z')) return 0;
  const bool west = in.Eat('-');
  if (!west && !in.Eat('+')) return std::nullopt;
  const auto hours = in.Digits(2);
  if (!hours || *hours > 23) return std::nullopt;
  in.Eat(':');
  const auto minutes = in.done() ? 0 : in.Digits(2);
  if (!minutes || *minutes > 59) return std::nullopt;
  const int seconds = *hours * 3600 + *minutes * 60;
  return west ? -seconds : seconds;
}

std::optional<int64_t> ReadIsoTime(std::string_view text) {
  Fields in(text);
  const auto date = ReadDate(in);
  if (!date) return std::nullopt;
  int64_t seconds = std::chrono::seconds(date->time_since_epoch()).count();
  if (in.Eat('T') || in.Eat(' ')) {
    const auto time = ReadTime(in);
    const auto offset = time ? ReadOffset(in) : std::nullopt;
    if (!offset) return std::nullopt;
    seconds += *time - *offset;
  }
  if (!in.done()) return std::nullopt;
  return seconds;
}

Result<std::string> Render(const ChatTemplate& chat_template, std::string_view line,
                           int64_t now_unix_seconds) {
  TESSERA_ASSIGN_OR_RETURN(json::Value value, json::Parse(line, json::Limits{}, "request"));
  if (!value.is_object()) return Fail(InvalidArgument("request must be a JSON object"));
  json::Object& request = value.as_object();
  const json::Value* now = request.if_contains("now");
  if (now == nullptr) return chat_template.RenderRequest(line, now_unix_seconds);
  if (!now->is_string()) return Fail(InvalidArgument("'now' must be an ISO 8601 time in a string"));
  TESSERA_ASSIGN_OR_RETURN(now_unix_seconds, ParseIsoTime(now->as_string()));
  return chat_template.RenderRequest(line, now_unix_seconds);
}

}  // namespace

Result<int64_t> ParseIsoTime(std::string_view text) {
  if (const auto seconds = ReadIsoTime(text)) return *seconds;
  return Fail(InvalidArgument(
      fmt::format("'{}' is no ISO 8601 time; expected one like 2026-01-15T12:34:56", text)));
}

std::string RenderLine(const ChatTemplate& chat_template, std::string_view line,
                       int64_t now_unix_seconds) {
  const Result<std::string> text = Render(chat_template, line, now_unix_seconds);
  json::Object answer;
  if (text.has_value()) {
    answer["text"] = *text;
  } else {
    answer["error"] = text.error().ToString();
  }
  return json::Serialize(answer);
}

}  // namespace tessera::text
