// SPDX-License-Identifier: Apache-2.0
#include "server/otlp/span.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/utf8.h"

namespace tessera::server::otlp {
namespace {

/// gen_ai.operation.name of the routes that generate.
std::string_view OperationOf(std::string_view route) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOperations = {{
      {"/v1/chat/completions", "chat"},
      {"/v1/messages", "chat"},
      {"/v1/responses", "chat"},
      {"/v1/completions", "text_completion"},
      {"/generate", "text_completion"},
      {"/v1/embeddings", "embeddings"},
  }};
  const auto found =
      std::ranges::find(kOperations, route, &std::pair<std::string_view, std::string_view>::first);
  return found == kOperations.end() ? "" : found->second;
}

void AddGeneration(const RequestRecord& record, std::vector<Attribute>* attributes) {
  const GenerationFacts& facts = *record.generation;
  const auto add = [&](std::string name, AttributeValue value) {
    attributes->emplace_back(std::move(name), std::move(value));
  };
  add("gen_ai.operation.name", std::string(OperationOf(record.route)));
  add("gen_ai.provider.name", "tessera");
  add("gen_ai.request.model", record.model);
  add("gen_ai.response.model", record.model);
  add("gen_ai.usage.input_tokens", facts.prompt_tokens);
  add("gen_ai.usage.output_tokens", facts.output_tokens);
  add("gen_ai.usage.cache_read.input_tokens", facts.cached_tokens);
  add("gen_ai.response.finish_reasons",
      std::vector{std::string(engine::FinishReasonName(facts.reason))});
  if (facts.has_token) add("tessera.time_to_first_token", Seconds(facts.queue + facts.prefill));
}

Span ServerSpan(const RequestRecord& record) {
  Span span{.trace_id = record.trace.trace_id,
            .span_id = record.trace.span_id,
            .parent_id = record.trace.parent_id,
            .state = record.trace.state,
            .flags = record.trace.flags,
            .name = fmt::format("{} {}", record.method, record.route),
            .kind = SpanKind::kServer,
            .start_unix_ns = record.arrival_unix_ns,
            .end_unix_ns = record.arrival_unix_ns + record.duration.count(),
            .attributes = {{"http.request.method", record.method},
                           {"url.path", record.path},
                           {"http.response.status_code", int64_t{record.status}},
                           {"tessera.request_id", record.request_id}},
            .is_error = record.status >= 500};
  if (record.route.empty()) span.name = record.method;
  if (!record.route.empty()) span.attributes.emplace_back("http.route", record.route);
  if (!record.key_name.empty()) span.attributes.emplace_back("tessera.key", record.key_name);
  if (record.status >= 400)
    span.attributes.emplace_back("error.type", std::to_string(record.status));
  if (record.generation.has_value()) AddGeneration(record, &span.attributes);
  return span;
}

json::Object TextBody(std::string_view text) {
  return json::Object{{"stringValue", EscapeNonUtf8(text)}};
}

json::Object ValueBody(const AttributeValue& value) {
  // 64-bit numbers are strings in the JSON of protocol buffers.
  if (const auto* number = std::get_if<int64_t>(&value))
    return json::Object{{"intValue", std::to_string(*number)}};
  if (const auto* real = std::get_if<double>(&value)) return json::Object{{"doubleValue", *real}};
  if (const auto* text = std::get_if<std::string>(&value)) return TextBody(*text);
  json::Array values;
  for (const std::string& text : std::get<std::vector<std::string>>(value))
    values.push_back(TextBody(text));
  json::Object list{{"values", std::move(values)}};
  return json::Object{{"arrayValue", std::move(list)}};
}

json::Array AttributesBody(const std::vector<Attribute>& attributes) {
  json::Array body;
  for (const auto& [name, value] : attributes)
    body.push_back(json::Object{{"key", name}, {"value", ValueBody(value)}});
  return body;
}

json::Object SpanBody(const Span& span) {
  constexpr int kError = 2;
  json::Object body{{"traceId", span.trace_id},
                    {"spanId", span.span_id},
                    {"flags", span.flags},
                    {"name", EscapeNonUtf8(span.name)},
                    {"kind", static_cast<int>(span.kind)},
                    {"startTimeUnixNano", std::to_string(span.start_unix_ns)},
                    {"endTimeUnixNano", std::to_string(span.end_unix_ns)},
                    {"attributes", AttributesBody(span.attributes)}};
  if (!span.parent_id.empty()) body["parentSpanId"] = span.parent_id;
  if (!span.state.empty()) body["traceState"] = span.state;
  if (span.is_error) body["status"] = json::Object{{"code", kError}};
  return body;
}

}  // namespace

std::vector<Span> SpansOf(const RequestRecord& record) {
  std::vector<Span> spans{ServerSpan(record)};
  if (!record.generation.has_value()) return spans;
  int64_t at = record.arrival_unix_ns;
  const auto add = [&](std::string name, Duration duration) {
    Span span;
    span.trace_id = record.trace.trace_id;
    span.span_id = NewSpanId();
    span.parent_id = record.trace.span_id;
    span.state = record.trace.state;
    span.flags = record.trace.flags;
    span.name = std::move(name);
    span.start_unix_ns = at;
    span.end_unix_ns = at += duration.count();
    spans.push_back(std::move(span));
  };
  const GenerationFacts& facts = *record.generation;
  add("queue", facts.queue);
  if (facts.prefill > Duration::zero()) add("prefill", facts.prefill);
  if (facts.has_token) add("decode", facts.decode);
  return spans;
}

std::string EncodeTraces(const std::vector<Span>& spans, std::string_view version) {
  json::Array bodies;
  for (const Span& span : spans) bodies.push_back(SpanBody(span));
  const std::vector<Attribute> service{{"service.name", "tessera"},
                                       {"service.version", std::string(version)}};
  const json::Object scope{{"name", "tessera.server"}, {"version", version}};
  json::Object scoped{{"scope", scope}, {"spans", std::move(bodies)}};
  const json::Object described{{"attributes", AttributesBody(service)}};
  json::Object resource{{"resource", described}, {"scopeSpans", json::Array{std::move(scoped)}}};
  return json::Serialize(json::Object{{"resourceSpans", json::Array{std::move(resource)}}});
}

}  // namespace tessera::server::otlp
