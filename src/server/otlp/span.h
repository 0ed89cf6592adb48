// SPDX-License-Identifier: Apache-2.0
//
// Spans: a finished request as OpenTelemetry tells it: one server span, and below it queue, prefill
// and decode by the engine's own times. Names and attributes are the semantic conventions for HTTP
// and generative AI (https://opentelemetry.io/docs/specs/semconv/); what these have no name for
// begins with "tessera.". Nothing that was said is in a span. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "server/request_record.h"

namespace tessera::server::otlp {

using AttributeValue = std::variant<std::string, int64_t, double, std::vector<std::string>>;
using Attribute = std::pair<std::string, AttributeValue>;

enum class SpanKind : uint8_t { kInternal = 1, kServer = 2 };  // Numbers of the protocol.

struct Span {
  std::string trace_id;  // Hexadecimal, as trace_context.h has them.
  std::string span_id;
  std::string parent_id;  // Empty: the first of its trace.
  std::string state;      // tracestate
  uint8_t flags = 0;
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  int64_t start_unix_ns = 0;
  int64_t end_unix_ns = 0;
  std::vector<Attribute> attributes;
  bool is_error = false;
};

/// The server span first.
std::vector<Span> SpansOf(const RequestRecord& record);

/// The body of POST /v1/traces (ExportTraceServiceRequest in its JSON encoding). `version` is the
/// service's.
std::string EncodeTraces(const std::vector<Span>& spans, std::string_view version);

}  // namespace tessera::server::otlp
