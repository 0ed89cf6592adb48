// SPDX-License-Identifier: Apache-2.0
#include "net/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tessera::net {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<SseEvent> Parse(std::string_view bytes, size_t grain = SIZE_MAX) {
  std::vector<SseEvent> events;
  SseParser parser([&](SseEvent event) { events.push_back(std::move(event)); });
  while (!bytes.empty()) {
    EXPECT_TRUE(parser.Feed(bytes.substr(0, grain)).ok());
    bytes.remove_prefix(std::min(grain, bytes.size()));
  }
  return events;
}

std::vector<std::string> Data(std::string_view bytes, size_t grain = SIZE_MAX) {
  std::vector<std::string> all;
  for (const SseEvent& event : Parse(bytes, grain)) all.push_back(event.data);
  return all;
}

TEST(EncodeSse, WritesOneDataLinePerLine) {
  EXPECT_EQ(EncodeSseData("[DONE]"), "data: [DONE]\n\n");
  EXPECT_EQ(EncodeSseData(""), "data: \n\n");
  EXPECT_EQ(EncodeSseData("a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
  EXPECT_EQ(EncodeSse({.event = "ping", .data = "x", .id = "7"}),
            "event: ping\nid: 7\ndata: x\n\n");
  EXPECT_EQ(EncodeSseComment("alive"), ": alive\n\n");
}

TEST(SseParser, ReadsWhatTheEncoderWrites) {
  for (const std::string data : {"", "a", "a\nb", "\n", "\n\n", " leading", "x: y", ":c"})
    EXPECT_THAT(Data(EncodeSseData(data)), ElementsAre(data));
}

TEST(SseParser, EverySplitGivesTheSameEvents) {
  const std::string bytes =
      "\xef\xbb\xbf"
      "data: a\r\ndata:b\r\rid: 3\nevent: e\ndata\n\n: note\n\ndata: last\n\r\n";
  for (size_t grain = 1; grain <= bytes.size(); ++grain) {
    const std::vector<SseEvent> events = Parse(bytes, grain);
    ASSERT_EQ(events.size(), 3u) << grain;
    EXPECT_EQ(events[0].data, "a\nb");
    EXPECT_EQ(events[1].data, "");
    EXPECT_EQ(events[1].event, "e");
    EXPECT_EQ(events[1].id, "3");
    EXPECT_EQ(events[2].data, "last");
    EXPECT_EQ(events[2].event, "");
    EXPECT_EQ(events[2].id, "3") << "the last seen id stays";
  }
}

TEST(SseParser, IncompleteEventsAreNotReported) {
  EXPECT_THAT(Data("data: a\n"), IsEmpty());
  EXPECT_THAT(Data("event: x\n\n"), IsEmpty()) << "no data, no event";
}

TEST(SseParser, CountsComments) {
  SseParser parser([](SseEvent) { FAIL(); });
  EXPECT_TRUE(parser.Feed(": a\n\n:\n\n").ok());
  EXPECT_EQ(parser.comments(), 2u);
}

TEST(SseParser, LimitAdmitsNAndRefusesNPlusOne) {
  for (const size_t size : {9, 10, 11}) {
    int events = 0;
    SseParser parser([&](SseEvent) { ++events; }, 10);
    const std::string line = "data:" + std::string(size - 5, 'x') + "\n\n";
    EXPECT_EQ(parser.Feed(line).ok(), size <= 10);
    EXPECT_EQ(events, size <= 10 ? 1 : 0);
    EXPECT_EQ(parser.Feed("data:y\n\n").ok(), size <= 10) << "a failed stream stays failed";
  }
}

}  // namespace
}  // namespace tessera::net
