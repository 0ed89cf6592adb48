// SPDX-License-Identifier: Apache-2.0
#include "server/trace_context.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/limits.h"

namespace tessera::server {
namespace {

constexpr std::string_view kGood = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Traceparent, HasFourFields) {
  const auto parent = ParseTraceparent(kGood);
  ASSERT_TRUE(parent.has_value());
  EXPECT_EQ(parent->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(parent->parent_id, "00f067aa0ba902b7");
  EXPECT_EQ(parent->flags, 1);
}

TEST(Traceparent, AnyOtherFormIsMalformed) {
  const std::string good(kGood);
  for (const std::string& bad :
       {std::string(),
        good.substr(1),
        good.substr(0, 54),
        good + "0",
        good + "-",
        good + "-00",
        "ff" + good.substr(2),
        "0g" + good.substr(2),
        "0G" + good.substr(2),
        " " + good,
        good + " ",
        "00_" + good.substr(3),
        good.substr(0, 35) + "_" + good.substr(36),
        good.substr(0, 52) + "_" + good.substr(53),
        good.substr(0, 53) + "0A",
        good.substr(0, 53) + "0x",
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
        std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01-"),
        good + "," + good})
    EXPECT_FALSE(ParseTraceparent(bad).has_value()) << bad;
}

TEST(Traceparent, ALaterVersionMayGoOnBehindADash) {
  const std::string later = "cc" + std::string(kGood.substr(2));
  EXPECT_TRUE(ParseTraceparent(later).has_value());
  EXPECT_TRUE(ParseTraceparent(later + "-what-comes").has_value());
  EXPECT_TRUE(ParseTraceparent(later + "-").has_value());
  EXPECT_FALSE(ParseTraceparent(later + ".what").has_value());
  const size_t room = kTraceparentBytesMax - later.size();
  EXPECT_TRUE(ParseTraceparent(later + "-" + std::string(room - 1, 'x')).has_value());
  EXPECT_FALSE(ParseTraceparent(later + "-" + std::string(room, 'x')).has_value());
}

TEST(Tracestate, HasKeysAndValues) {
  for (const std::string& good :
       {std::string(), std::string("rojo=00f067aa0ba902b7"), std::string("rojo=1,congo=t61"),
        std::string("a=1, b=2\t,,c=3,"), std::string("fw529a3039@dt=FfAK"), std::string("0x@a=1"),
        std::string("a_-*/9=!~ x"), "a" + std::string(240, 'b') + "@s0123456789abc=1",
        std::string(256, 'k') + "=1", "k=" + std::string(256, 'v')})
    EXPECT_TRUE(IsTracestate(good)) << good;
  for (const std::string& bad :
       {std::string("a"), std::string("=1"), std::string("a="), std::string("A=1"),
        std::string("1a=1"), std::string("a b=1"), std::string("a=b=c"), std::string("a=1,a=2"),
        std::string("a=\x7f"), std::string("a=\xc3\xa4"), std::string("a=1\n"), std::string("@a=1"),
        std::string("a@=1"), std::string("a@1=1"), std::string("a@b@c=1"),
        "a" + std::string(241, 'b') + "@s=1", std::string("a@s0123456789abcd=1"),
        std::string(257, 'k') + "=1", "k=" + std::string(257, 'v')})
    EXPECT_FALSE(IsTracestate(bad)) << bad;
}

TEST(Tracestate, HasLimits) {
  const auto members = [](size_t count) {
    std::string list;
    for (size_t i = 0; i < count; ++i) list += fmt::format("{}k{}=v", i > 0 ? "," : "", i);
    return list;
  };
  EXPECT_TRUE(IsTracestate(members(kTracestateMembersMax)));
  EXPECT_FALSE(IsTracestate(members(kTracestateMembersMax + 1)));
  const std::string start = "a=" + std::string(250, 'x') + ",b=" + std::string(200, 'x') + ",c=";
  EXPECT_TRUE(IsTracestate(start + std::string(kTracestateBytesMax - start.size(), 'x')));
  EXPECT_FALSE(IsTracestate(start + std::string(kTracestateBytesMax + 1 - start.size(), 'x')));
}

TEST(TraceContext, GoesOnWithTheCallersTrace) {
  const net::Headers headers{
      {"TraceParent", std::string(kGood)}, {"tracestate", "a=1"}, {"Tracestate", "b=2"}};
  const TraceContext trace = ReadTraceContext(headers);
  EXPECT_EQ(trace.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace.parent_id, "00f067aa0ba902b7");
  EXPECT_TRUE(trace.is_sampled());
  EXPECT_EQ(trace.state, "a=1,b=2");
  EXPECT_EQ(trace.span_id.size(), 16u);
  EXPECT_NE(trace.span_id, trace.parent_id);
  EXPECT_EQ(Traceresponse(trace), "00-" + trace.trace_id + "-" + trace.span_id + "-01");
}

TEST(TraceContext, MalformedBeginsANewTrace) {
  for (const net::Headers& headers :
       {net::Headers{}, net::Headers{{"traceparent", "junk"}, {"tracestate", "a=1"}},
        net::Headers{{"traceparent", std::string(kGood)},
                     {"traceparent", std::string(kGood)},
                     {"tracestate", "a=1"}}}) {
    const TraceContext trace = ReadTraceContext(headers);
    EXPECT_TRUE(trace.parent_id.empty() && trace.state.empty());
    EXPECT_NE(trace.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
    EXPECT_TRUE(ParseTraceparent(Traceresponse(trace)).has_value());
    EXPECT_TRUE(trace.is_sampled());
  }
}

TEST(TraceContext, AMalformedStateIsDroppedAlone) {
  const TraceContext trace =
      ReadTraceContext({{"traceparent", std::string(kGood)}, {"tracestate", "UPPER=1"}});
  EXPECT_EQ(trace.parent_id, "00f067aa0ba902b7");
  EXPECT_EQ(trace.state, "");
}

TEST(TraceContext, WhatTheCallerDoesNotSampleIsNotSampled) {
  std::string unsampled(kGood);
  unsampled.back() = '0';
  EXPECT_FALSE(ReadTraceContext({{"traceparent", unsampled}}).is_sampled());
  unsampled.replace(53, 2, "02");  // Another flag.
  EXPECT_FALSE(ReadTraceContext({{"traceparent", unsampled}}).is_sampled());
}

}  // namespace
}  // namespace tessera::server
