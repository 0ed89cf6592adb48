// SPDX-License-Identifier: Apache-2.0
#include "server/otlp/span.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/json.h"

namespace tessera::server::otlp {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

RequestRecord Chat() {
  RequestRecord record;
  record.request_id = "mine";
  record.trace = {.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
                  .parent_id = "00f067aa0ba902b7",
                  .span_id = "0123456789abcdef",
                  .flags = 1,
                  .state = "a=1"};
  record.method = "POST";
  record.path = record.route = "/v1/chat/completions";
  record.model = "org/fake";
  record.arrival_unix_ns = 1'000'000'000'000'000'000;
  record.status = 200;
  record.duration = milliseconds(100);
  GenerationFacts facts;
  facts.prompt_tokens = 7;
  facts.cached_tokens = 3;
  facts.output_tokens = 5;
  facts.queue = milliseconds(10);
  facts.prefill = milliseconds(20);
  facts.decode = milliseconds(60);
  facts.has_token = true;
  record.generation = facts;
  return record;
}

const AttributeValue* Find(const Span& span, std::string_view name) {
  for (const auto& [key, value] : span.attributes)
    if (key == name) return &value;
  return nullptr;
}

TEST(Spans, TellAGenerationInItsStages) {
  const std::vector<Span> spans = SpansOf(Chat());
  ASSERT_EQ(spans.size(), 4u);
  const Span& server = spans[0];
  EXPECT_EQ(server.name, "POST /v1/chat/completions");
  EXPECT_EQ(server.kind, SpanKind::kServer);
  EXPECT_EQ(server.parent_id, "00f067aa0ba902b7");
  EXPECT_EQ(server.span_id, "0123456789abcdef");
  EXPECT_EQ(server.end_unix_ns - server.start_unix_ns, 100'000'000);
  EXPECT_EQ(*Find(server, "gen_ai.operation.name"), AttributeValue("chat"));
  EXPECT_EQ(*Find(server, "gen_ai.request.model"), AttributeValue("org/fake"));
  EXPECT_EQ(*Find(server, "gen_ai.usage.input_tokens"), AttributeValue(int64_t{7}));
  EXPECT_EQ(*Find(server, "gen_ai.usage.output_tokens"), AttributeValue(int64_t{5}));
  EXPECT_EQ(*Find(server, "http.response.status_code"), AttributeValue(int64_t{200}));
  EXPECT_EQ(Find(server, "error.type"), nullptr);
  int64_t at = server.start_unix_ns;
  const std::vector<std::pair<std::string, int64_t>> stages{
      {"queue", 10'000'000}, {"prefill", 20'000'000}, {"decode", 60'000'000}};
  for (size_t i = 0; i < stages.size(); ++i) {
    const Span& stage = spans[i + 1];
    EXPECT_EQ(stage.name, stages[i].first);
    EXPECT_EQ(stage.parent_id, server.span_id);
    EXPECT_EQ(stage.trace_id, server.trace_id);
    EXPECT_EQ(stage.start_unix_ns, at) << "one behind the other";
    EXPECT_EQ(stage.end_unix_ns - stage.start_unix_ns, stages[i].second);
    at = stage.end_unix_ns;
  }
  EXPECT_LE(at, server.end_unix_ns);
}

TEST(Spans, ARequestWithoutAGenerationIsOne) {
  RequestRecord record = Chat();
  record.generation.reset();
  record.route.clear();
  record.status = 500;
  const std::vector<Span> spans = SpansOf(record);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].name, "POST");
  EXPECT_TRUE(spans[0].is_error);
  EXPECT_EQ(*Find(spans[0], "error.type"), AttributeValue("500"));
  record.status = 404;
  EXPECT_FALSE(SpansOf(record)[0].is_error) << "the client's mistake";
}

TEST(Spans, WhatNeverRanHasNoStagesBeyondTheQueue) {
  RequestRecord record = Chat();
  record.generation->has_token = false;
  record.generation->prefill = Duration::zero();
  EXPECT_EQ(SpansOf(record).size(), 2u);
}

TEST(Encoding, IsTheProtocolsJson) {
  RequestRecord record = Chat();
  record.trace.parent_id.clear();
  record.generation.reset();
  record.path = "/a\nb\xff";
  const std::string text = EncodeTraces(SpansOf(record), "1.2");
  EXPECT_THAT(text, Not(HasSubstr("parentSpanId")));
  const auto parsed = json::Parse(text, {}, "traces");
  ASSERT_TRUE(parsed.has_value()) << text;
  const json::Object& resource =
      parsed->as_object().at("resourceSpans").as_array().at(0).as_object();
  EXPECT_THAT(json::Serialize(resource.at("resource")),
              HasSubstr(R"({"key":"service.name","value":{"stringValue":"tessera"}})"));
  const json::Object& scoped = resource.at("scopeSpans").as_array().at(0).as_object();
  const json::Object& span = scoped.at("spans").as_array().at(0).as_object();
  EXPECT_EQ(span.at("traceId").as_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(span.at("spanId").as_string(), "0123456789abcdef");
  EXPECT_EQ(span.at("traceState").as_string(), "a=1");
  EXPECT_EQ(span.at("kind").as_int64(), 2);
  EXPECT_EQ(span.at("startTimeUnixNano").as_string(), "1000000000000000000");
  EXPECT_EQ(span.at("endTimeUnixNano").as_string(), "1000000000100000000");
  EXPECT_THAT(json::Serialize(span.at("attributes")),
              HasSubstr(R"({"key":"http.response.status_code","value":{"intValue":"200"}})"));
}

}  // namespace
}  // namespace tessera::server::otlp
