// SPDX-License-Identifier: Apache-2.0
#include "access/key_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "access/limits.h"

namespace tessera::access {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Hash(std::string_view key) {
  return "sha256:" + DigestOf(key);
}
std::string Entry(std::string_view members, std::string_view name = "alice") {
  return fmt::format(R"({{"name":"{}","hash":"{}"{}{}}})", name, Hash(name),
                     members.empty() ? "" : ",", members);
}
std::string File(std::string_view entries) {
  return fmt::format(R"({{"keys":[{}]}})", entries);
}
std::string ErrorOf(const std::string& text) {
  const auto keys = ParseKeyFile(text);
  if (keys.has_value()) ADD_FAILURE() << "taken: " << text;
  return keys.has_value() ? "" : keys.error().ToString();
}

TEST(KeyFile, AnEntryIsReadWhole) {
  const auto keys = ParseKeyFile(File(
      Entry(R"("scopes":["admin","inference"],"priority":-7,"rpm":60,"tpm":1000,"concurrency":2,)"
            R"("expires":"2027-01-31T12:00:01Z")") +
      "," + Entry("", "bob")));
  ASSERT_TRUE(keys.has_value()) << keys.error().ToString();
  const ApiKey& alice = keys->at(0);
  EXPECT_EQ(alice.name, "alice");
  EXPECT_EQ(alice.digest, DigestOf("alice"));
  EXPECT_TRUE(alice.Has(Scope::kAdmin) && alice.Has(Scope::kInference));
  EXPECT_FALSE(alice.Has(Scope::kMetrics));
  EXPECT_EQ(alice.priority, -7);
  EXPECT_EQ(alice.limits,
            (KeyLimits{.requests_per_minute = 60, .tokens_per_minute = 1000, .concurrency = 2}));
  EXPECT_EQ(alice.expires, 1801396801);
  const ApiKey& bob = keys->at(1);
  EXPECT_EQ(bob.scopes, ScopeBit(Scope::kInference));
  EXPECT_EQ(bob.priority, 0);
  EXPECT_EQ(bob.limits, KeyLimits{});
  EXPECT_EQ(bob.expires, std::nullopt);
}

TEST(KeyFile, WhatAnEntryWritesIsReadBackTheSame) {
  ApiKey key{.name = "a.b_c@d-e",
             .digest = DigestOf("x"),
             .scopes = 7,
             .priority = 3,
             .limits = {1, 2, 3},
             .expires = 0};
  const auto keys = ParseKeyFile(File(json::Serialize(KeyEntry(key))));
  ASSERT_TRUE(keys.has_value()) << keys.error().ToString();
  EXPECT_EQ(keys->front(), key);
}

TEST(KeyFile, AnUnknownMemberIsNamed) {
  EXPECT_THAT(ErrorOf(File(Entry("\"rmp\":60"))), HasSubstr("keys[0]: unknown member 'rmp'"));
  EXPECT_THAT(ErrorOf(R"({"keys":[],"version":1})"), HasSubstr("'version'"));
  EXPECT_THAT(ErrorOf(File(Entry("") + "," + Entry("\"key\":\"secret\"", "bob"))),
              HasSubstr("keys[1]: unknown member 'key'"));
}

TEST(KeyFile, WrongValuesAreNamed) {
  for (const auto& [members, word] : std::vector<std::pair<const char*, const char*>>{
           {R"("scopes":[])", "scopes"},
           {R"("scopes":"admin")", "scopes"},
           {R"("scopes":["root"])", "root"},
           {R"("scopes":["admin","admin"])", "twice"},
           {R"("scopes":[1])", "scopes"},
           {R"("rpm":"60")", "rpm"},
           {R"("rpm":1.5)", "rpm"},
           {R"("priority":"high")", "priority"},
           {R"("expires":1)", "expires"},
           {R"("expires":"tomorrow")", "tomorrow"},
           {R"("expires":"2027-02-29")", "2027-02-29"},
           {R"("expires":"2027-01-31T24:00:00Z")", "expires"},
           {R"("expires":"2027-01-31T12:00:00+01:00")", "expires"},
           {R"("expires":"2027-1-1")", "expires"}}) {
    EXPECT_THAT(ErrorOf(File(Entry(members))), HasSubstr("keys[0]")) << members;
    EXPECT_THAT(ErrorOf(File(Entry(members))), HasSubstr(word)) << members;
  }
  for (const char* text : {"", "[]", "{}", "3", R"({"keys":{}})", R"({"keys":[3]})",
                           R"({"keys":[{}]})", R"({"keys":[],"keys":[]})", R"({"keys":[]} x)"})
    EXPECT_FALSE(ParseKeyFile(text).has_value()) << text;
}

TEST(KeyFile, NoErrorHoldsAValueOfHash) {
  for (const std::string value : {"hunter2-hunter2", "sha256:hunter2", "SHA256:hunter2"})
    EXPECT_THAT(ErrorOf(fmt::format(R"({{"keys":[{{"name":"a","hash":"{}"}}]}})", value)),
                Not(HasSubstr("hunter2")));
  EXPECT_THAT(ErrorOf(fmt::format(R"({{"keys":[{{"name":"a","hash":"{}"}}]}})", Hash(""))),
              HasSubstr("empty key"));
}

TEST(KeyFile, NamesAndKeysAreUnique) {
  EXPECT_THAT(ErrorOf(File(Entry("") + "," + Entry("\"rpm\":1"))), HasSubstr("named alice"));
  const std::string twin = fmt::format(R"({{"name":"bob","hash":"{}"}})", Hash("alice"));
  EXPECT_THAT(ErrorOf(File(Entry("") + "," + twin)), HasSubstr("alice and bob are the same key"));
}

TEST(KeyFile, LimitsHoldAtTheirEdge) {
  const auto is_taken = [](const std::string& members) {
    return ParseKeyFile(File(Entry(members))).has_value();
  };
  const auto number = [&](std::string_view name, int64_t value) {
    return is_taken(fmt::format("\"{}\":{}", name, value));
  };
  for (const char* name : {"rpm", "tpm", "concurrency"}) {
    EXPECT_FALSE(number(name, 0)) << name;
    EXPECT_TRUE(number(name, 1)) << name;
  }
  for (const char* name : {"rpm", "tpm"}) {
    EXPECT_TRUE(number(name, kKeyRateMax - 1) && number(name, kKeyRateMax)) << name;
    EXPECT_FALSE(number(name, kKeyRateMax + 1)) << name;
  }
  EXPECT_TRUE(number("concurrency", kKeyConcurrencyMax));
  EXPECT_FALSE(number("concurrency", kKeyConcurrencyMax + 1));
  EXPECT_TRUE(number("priority", kPriorityMax) && number("priority", -kPriorityMax));
  EXPECT_FALSE(number("priority", kPriorityMax + 1) || number("priority", -kPriorityMax - 1));

  const auto named = [](size_t length) {
    return ParseKeyFile(File(Entry("", std::string(length, 'n')))).has_value();
  };
  EXPECT_FALSE(named(0));
  EXPECT_TRUE(named(kKeyNameBytesMax - 1) && named(kKeyNameBytesMax));
  EXPECT_FALSE(named(kKeyNameBytesMax + 1));
  for (const std::string name : {"a b", "a\\u0000", "\u00e4", "--api-key #1", "a/b"})
    EXPECT_FALSE(ParseKeyFile(File(Entry("", name))).has_value()) << name;

  const auto many = [](size_t count) {
    std::string entries;
    for (size_t i = 0; i < count; ++i)
      entries += (i == 0 ? "" : ",") + Entry("", fmt::format("key{}", i));
    return ParseKeyFile(File(entries));
  };
  EXPECT_TRUE(many(kKeysMax).has_value());
  const auto more = many(kKeysMax + 1);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code(), Code::kResourceExhausted);

  const std::string empty = File("");
  EXPECT_TRUE(ParseKeyFile(empty + std::string(kKeyFileBytesMax - empty.size(), ' ')).has_value());
  EXPECT_FALSE(
      ParseKeyFile(empty + std::string(kKeyFileBytesMax - empty.size() + 1, ' ')).has_value());
}

TEST(KeyFile, AnErrorNamesTheFile) {
  const auto keys = ReadKeyFile("/no/such/keys.json");
  ASSERT_FALSE(keys.has_value());
  EXPECT_THAT(keys.error().ToString(), HasSubstr("/no/such/keys.json"));
}

TEST(ApiKey, ANewKeyIsLongAndNeverTheSame) {
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.insert(MakeKey());
  EXPECT_EQ(keys.size(), 100u);
  for (const std::string& key : keys) {
    EXPECT_EQ(key.size(), 8u + 43u);
    EXPECT_TRUE(key.starts_with("tessera-"));
  }
}

TEST(ApiKey, TimesAreReadAndWritten) {
  EXPECT_EQ(ParseUtcTime("1970-01-01"), 0);
  EXPECT_EQ(ParseUtcTime("2000-02-29T23:59:59Z"), 951868799);
  EXPECT_EQ(FormatUtcTime(951868799), "2000-02-29T23:59:59Z");
  for (const char* text : {"", "1970", "1970-13-01", "1970-00-01", "1970-01-01T", "+970-01-01",
                           "1970-01-01T00:00:00", "1970-01-01T00:00:0 Z", "1970-01-01 00:00:00Z"})
    EXPECT_EQ(ParseUtcTime(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tessera::access
