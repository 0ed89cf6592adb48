// SPDX-License-Identifier: Apache-2.0
//
// W3C Trace Context (https://www.w3.org/TR/trace-context/, Recommendation of 23 November 2021): to
// which trace a request belongs. `traceparent` is read strictly: one that is malformed, or there
// twice, begins a new trace, and then `tracestate` is not looked at. A malformed `tracestate` is
// dropped alone. Pure functions, except for the random ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace tessera::server {

/// The four fields of a `traceparent`.
struct Traceparent {
  std::string trace_id;   // 32 lowercase hexadecimal digits, not all 0.
  std::string parent_id;  // 16 of them, not all 0: the caller's span.
  uint8_t flags = 0;
};
inline constexpr uint8_t kTraceSampled = 0x01;

/// Nothing when malformed. A version that we do not know is read as far as version 00 goes, as the
/// Recommendation has it.
std::optional<Traceparent> ParseTraceparent(std::string_view value);

/// Whether `list` is a well-formed tracestate: keys and values by their grammar, no key twice,
/// within the limits (limits.h).
bool IsTracestate(std::string_view list);

/// One request's place in its trace.
struct TraceContext {
  std::string trace_id;   // The caller's, or a new one.
  std::string parent_id;  // The caller's span; empty in a new trace.
  std::string span_id;    // Of this request, always new.
  uint8_t flags = 0;      // The caller's; a new trace is sampled.
  std::string state;      // tracestate, its fields joined; empty where there is none.

  bool is_sampled() const { return (flags & kTraceSampled) != 0; }
};

/// Of the headers `traceparent` and `tracestate`.
TraceContext ReadTraceContext(const net::Headers& headers);

/// The value of the header `traceresponse` (the draft that goes with the Recommendation): which
/// trace and span this answer belongs to.
std::string Traceresponse(const TraceContext& trace);

/// 16 hexadecimal digits, not all 0.
std::string NewSpanId();

}  // namespace tessera::server
