// SPDX-License-Identifier: Apache-2.0
#include "server/chat/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::server::chat {
namespace {

using ::testing::HasSubstr;

TEST(History, ATurnHoldsThoughtsTextAndCallsAndResultsFollowIt) {
  for (const bool joins : {false, true}) {
    History history(joins);
    EXPECT_FALSE(history.AddText("user", "hi"));
    EXPECT_FALSE(history.AddThoughts("hm"));
    EXPECT_FALSE(history.AddText("assistant", "Let me see."));
    EXPECT_FALSE(history.AddCall("a", "f", json::Object{{"x", 1}}));
    EXPECT_FALSE(history.AddCall("b", "g", "{"));
    EXPECT_TRUE(history.CheckComplete());
    EXPECT_FALSE(history.AddResult("b", "2"));
    EXPECT_FALSE(history.AddResult("a", "1"));
    EXPECT_FALSE(history.CheckComplete());
    EXPECT_FALSE(history.ends_with_assistant());
    EXPECT_EQ(json::Serialize(history.Take()),
              R"([{"role":"user","content":"hi"},)"
              R"({"role":"assistant","content":"Let me see.","reasoning_content":"hm",)"
              R"("tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":)"
              R"({"x":1}}},{"id":"b","type":"function","function":{"name":"g","arguments":"{"}}]},)"
              R"({"role":"tool","content":"2","tool_call_id":"b","name":"g"},)"
              R"({"role":"tool","content":"1","tool_call_id":"a","name":"f"}])");
  }
}

TEST(History, OnlyJoinedTurnsOfARoleBecomeOne) {
  for (const bool joins : {false, true}) {
    History history(joins);
    for (const char* role : {"user", "user", "assistant", "assistant"})
      EXPECT_FALSE(history.AddText(role, "x"));
    EXPECT_TRUE(history.ends_with_assistant());
    EXPECT_EQ(history.Take().size(), joins ? 2u : 4u);
  }
}

TEST(History, TextBehindCallsStandsBeforeThem) {
  History history(/*joins_turns=*/false);
  EXPECT_FALSE(history.AddCall("a", "f", json::Object()));
  EXPECT_FALSE(history.AddText("assistant", "Wait."));
  EXPECT_FALSE(history.AddResult("a", ""));
  const json::Array messages = history.Take();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].at("content"), "Wait.");
  EXPECT_EQ(messages[0].at("tool_calls").as_array().size(), 1u);
}

TEST(History, NothingComesBetweenCallsAndTheirResults) {
  const auto with_open_calls = [] {
    History history(/*joins_turns=*/true);
    EXPECT_FALSE(history.AddCall("a", "f", json::Object()));
    EXPECT_FALSE(history.AddCall("b", "f", json::Object()));
    return history;
  };
  History history = with_open_calls();
  EXPECT_THAT(*history.AddText("user", "x"), HasSubstr("\"a\" has no result (and 1 more)"));
  EXPECT_THAT(*history.AddCall("a", "g", {}), HasSubstr("another call"));
  EXPECT_FALSE(history.AddResult("a", "x"));
  EXPECT_THAT(*history.AddResult("a", "x"), HasSubstr("no call of the turn before"));
  EXPECT_THAT(*history.AddResult("absent", "x"), HasSubstr("\"absent\""));
  EXPECT_THAT(*history.AddText("assistant", "x"), HasSubstr("\"b\" has no result"));
  EXPECT_THAT(*history.AddThoughts("x"), HasSubstr("\"b\" has no result"));
  EXPECT_THAT(*history.AddCall("c", "f", {}), HasSubstr("\"b\" has no result"));
  EXPECT_THAT(*history.CheckComplete(), HasSubstr("\"b\" has no result"));
}

TEST(History, AnIdMayComeAgainOnceItsCallHasItsResult) {
  History history(/*joins_turns=*/true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(history.AddCall("call_0", "f", json::Object()));
    EXPECT_FALSE(history.AddResult("call_0", "x"));
  }
  EXPECT_FALSE(history.CheckComplete());
}

}  // namespace
}  // namespace tessera::server::chat
