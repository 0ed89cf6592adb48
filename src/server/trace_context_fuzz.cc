// SPDX-License-Identifier: Apache-2.0
//
// First line: traceparent; second: tracestate. What is accepted has the form that is promised, and
// says the same when it is read again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/limits.h"
#include "server/trace_context.h"

namespace tessera::server {
namespace {

void CheckTrace(std::string_view parent, std::string_view state) {
  const TraceContext trace =
      ReadTraceContext({{"traceparent", std::string(parent)}, {"tracestate", std::string(state)}});
  const auto answered = ParseTraceparent(Traceresponse(trace));
  TESSERA_CHECK(answered.has_value() && answered->trace_id == trace.trace_id);
  TESSERA_CHECK(answered->parent_id == trace.span_id);
  const auto given = ParseTraceparent(parent);
  TESSERA_CHECK(given.has_value() != trace.parent_id.empty());
  if (given.has_value()) {
    TESSERA_CHECK(parent.substr(3, 32) == trace.trace_id);
    TESSERA_CHECK(parent.substr(36, 16) == trace.parent_id);
  }
  TESSERA_CHECK(trace.state.size() <= kTracestateBytesMax && IsTracestate(trace.state));
  TESSERA_CHECK(trace.state.empty() || trace.state == state);
}

}  // namespace
}  // namespace tessera::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  tessera::server::CheckTrace(input.substr(0, line),
                              line == input.npos ? "" : input.substr(line + 1));
  return 0;
}
