// SPDX-License-Identifier: Apache-2.0
#include "server/trace_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "server/limits.h"

namespace tessera::server {
namespace {

constexpr size_t kTraceIdDigits = 32;
constexpr size_t kSpanIdDigits = 16;

bool IsLowerAlpha(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsHex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}
bool IsId(std::string_view text) {
  return IsHex(text) && std::ranges::any_of(text, [](char c) { return c != '0'; });
}
uint8_t HexByte(std::string_view two) {
  const auto digit = [](char c) { return IsDigit(c) ? c - '0' : c - 'a' + 10; };
  return static_cast<uint8_t>(digit(two[0]) * 16 + digit(two[1]));
}

bool IsKeyTail(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return IsLowerAlpha(c) || IsDigit(c) || c == '_' || c == '-' || c == '*' || c == '/';
  });
}

/// Section 3.3.1.3.1: a simple key, or tenant@system.
bool IsKey(std::string_view key) {
  constexpr size_t kSimpleMax = 256, kTenantMax = 241, kSystemMax = 14;
  const size_t at = key.find('@');
  if (at == key.npos)
    return !key.empty() && key.size() <= kSimpleMax && IsLowerAlpha(key[0]) && IsKeyTail(key);
  const std::string_view tenant = key.substr(0, at), system = key.substr(at + 1);
  return !tenant.empty() && tenant.size() <= kTenantMax &&
         (IsLowerAlpha(tenant[0]) || IsDigit(tenant[0])) && IsKeyTail(tenant) && !system.empty() &&
         system.size() <= kSystemMax && IsLowerAlpha(system[0]) && IsKeyTail(system);
}

/// Section 3.3.1.3.2: printable, without comma and equals sign, not ending in a space.
bool IsValue(std::string_view value) {
  constexpr size_t kMax = 256;
  return !value.empty() && value.size() <= kMax && value.back() != ' ' &&
         std::ranges::all_of(value,
                             [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// All fields of that name, in order.
std::vector<std::string_view> Values(const net::Headers& headers, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : headers)
    if (std::ranges::equal(key, name, {}, [](char c) {
          return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        }))
      values.push_back(value);
  return values;
}

std::string NewTraceId() {
  return NewSpanId() + NewSpanId();
}

}  // namespace

std::optional<Traceparent> ParseTraceparent(std::string_view value) {
  constexpr size_t kTraceAt = 3, kParentAt = kTraceAt + kTraceIdDigits + 1;
  constexpr size_t kFlagsAt = kParentAt + kSpanIdDigits + 1, kBytes = kFlagsAt + 2;
  if (value.size() < kBytes || value.size() > kTraceparentBytesMax) return std::nullopt;
  const std::string_view version = value.substr(0, 2);
  if (!IsHex(version) || version == "ff") return std::nullopt;
  // Later versions may go on behind a dash.
  if (value.size() > kBytes && (version == "00" || value[kBytes] != '-')) return std::nullopt;
  if (value[2] != '-' || value[kParentAt - 1] != '-' || value[kFlagsAt - 1] != '-')
    return std::nullopt;
  const std::string_view trace_id = value.substr(kTraceAt, kTraceIdDigits);
  const std::string_view parent_id = value.substr(kParentAt, kSpanIdDigits);
  const std::string_view flags = value.substr(kFlagsAt, 2);
  if (!IsId(trace_id) || !IsId(parent_id) || !IsHex(flags)) return std::nullopt;
  return Traceparent{std::string(trace_id), std::string(parent_id), HexByte(flags)};
}

bool IsTracestate(std::string_view list) {
  if (list.size() > kTracestateBytesMax) return false;
  std::vector<std::string_view> keys;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view member = Trimmed(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    if (member.empty()) continue;
    const size_t equals = member.find('=');
    if (equals == member.npos || !IsKey(member.substr(0, equals)) ||
        !IsValue(member.substr(equals + 1)))
      return false;
    keys.push_back(member.substr(0, equals));
    if (keys.size() > kTracestateMembersMax) return false;
  }
  std::ranges::sort(keys);
  return std::ranges::adjacent_find(keys) == keys.end();
}

TraceContext ReadTraceContext(const net::Headers& headers) {
  TraceContext trace{.trace_id = {}, .parent_id = {}, .span_id = NewSpanId(), .state = {}};
  const std::vector<std::string_view> given = Values(headers, "traceparent");
  std::optional<Traceparent> parent;
  if (given.size() == 1) parent = ParseTraceparent(given.front());
  if (!parent.has_value()) {
    trace.trace_id = NewTraceId();
    trace.flags = kTraceSampled;
    return trace;
  }
  trace.trace_id = std::move(parent->trace_id);
  trace.parent_id = std::move(parent->parent_id);
  trace.flags = parent->flags;
  std::string state;
  for (const std::string_view field : Values(headers, "tracestate"))
    state.append(state.empty() ? "" : ",").append(field);
  if (IsTracestate(state)) trace.state = std::move(state);
  return trace;
}

std::string Traceresponse(const TraceContext& trace) {
  return fmt::format("00-{}-{}-{:02x}", trace.trace_id, trace.span_id, trace.flags & kTraceSampled);
}

std::string NewSpanId() {
  uint64_t id = 0;
  while (id == 0) id = SystemRandom64();
  return fmt::format("{:016x}", id);
}

}  // namespace tessera::server
