// SPDX-License-Identifier: Apache-2.0
//
// Keys over HTTP: who is let in, what a key's limits and class do, who owns a request.
#include "server/access/access_control.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "access/key_file.h"
#include "base/file.h"
#include "support/brake.h"
#include "support/fake_service.h"
#include "support/fixtures.h"

namespace tessera::server {
namespace {

using testing::Brake;
using Server = testing::FakeService;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Completion(std::string_view members = {}) {
  return fmt::format(R"({{"model":"org/fake","prompt":"say\n","temperature":0{}{}}})",
                     members.empty() ? "" : ",", members);
}
json::Object Parsed(const std::string& text) {
  return json::Parse(text, {}, "answer").value().as_object();
}
net::Headers As(std::string_view key) {
  return {{"Authorization", "Bearer " + std::string(key)}};
}

/// A key file; the key of an entry is its name and "-key".
class Keys : public ::testing::Test {
 protected:
  static std::string Entry(std::string_view name, std::string_view members = {}) {
    return fmt::format(R"({{"name":"{0}","hash":"sha256:{1}"{2}{3}}})", name,
                       access::DigestOf(std::string(name) + "-key"), members.empty() ? "" : ",",
                       members);
  }
  void Write(const std::vector<std::string>& entries) {
    ASSERT_TRUE(
        WriteFileAtomic(path_, fmt::format("{{\"keys\":[{}]}}", fmt::join(entries, ","))).ok());
  }
  ApiOptions Options(const std::vector<std::string>& entries) {
    Write(entries);
    return {.access = {.key_file = path_}};
  }

  testing::TempDir folder_;
  const std::string path_ = (folder_.path() / "keys.json").string();
};

TEST_F(Keys, EachKeyMayCallWhatItsScopesSay) {
  Server server(Server::Says("x"),
                Options({Entry("alice"), Entry("prom", R"("scopes":["metrics"])"),
                         Entry("old", R"("expires":"2020-01-01")")}));
  const auto status = [&](const char* method, const char* path, const net::Headers& headers) {
    const bool has_body = std::string_view(method) == "POST";
    return server.Call(method, path, has_body ? Completion() : "", headers).status;
  };
  EXPECT_EQ(status("POST", "/v1/completions", As("alice-key")), 200);
  EXPECT_EQ(status("POST", "/v1/completions", {{"X-Api-Key", "alice-key"}}), 200);
  EXPECT_EQ(status("POST", "/v1/completions", As("prom-key")), 403);
  EXPECT_EQ(status("POST", "/v1/completions", As("old-key")), 401);
  EXPECT_EQ(status("POST", "/v1/completions", As("")), 401);
  EXPECT_EQ(status("POST", "/v1/completions", As("alice-ke")), 401);
  EXPECT_EQ(status("POST", "/v1/completions", {}), 401);
  EXPECT_EQ(status("GET", "/metrics", As("prom-key")), 200);
  EXPECT_EQ(status("GET", "/metrics", As("alice-key")), 403);
  EXPECT_EQ(status("GET", "/metrics", {}), 401);
  for (const char* open : {"/health", "/livez", "/version", "/openapi.json"})
    EXPECT_EQ(status("GET", open, {}), 200) << open;
}

TEST_F(Keys, ErrorsNameTheKeyButNeverSayIt) {
  Server server(Server::Says("x"), Options({Entry("old", R"("expires":"2020-01-01")"),
                                            Entry("prom", R"("scopes":["metrics"])")}));
  for (const char* key : {"old-key", "prom-key", "unknown-key"}) {
    const net::Response response = server.Call("POST", "/v1/completions", Completion(), As(key));
    EXPECT_GE(response.status, 401);
    EXPECT_THAT(response.body, Not(HasSubstr(key)));
    EXPECT_THAT(response.body, Not(HasSubstr(access::DigestOf(key))));
  }
  EXPECT_THAT(server.Call("GET", "/v1/models", "", As("old-key")).body,
              HasSubstr("'old' expired at 2020-01-01T00:00:00Z"));
  EXPECT_THAT(server.Call("GET", "/v1/models", "", As("prom-key")).body,
              HasSubstr("'prom' does not have the scope inference"));
}

TEST_F(Keys, SeveralPlainKeysWorkBesideTheFile) {
  ApiOptions options = Options({Entry("alice")});
  options.access.api_keys = {"one", "two"};
  Server server(Server::Says("x"), options);
  for (const char* key : {"one", "two", "alice-key"})
    EXPECT_EQ(server.Call("GET", "/v1/models", "", As(key)).status, 200) << key;
  EXPECT_EQ(server.Call("GET", "/v1/models", "", As("three")).status, 401);
}

TEST_F(Keys, WhatCannotBeReadIsNoServer) {
  Write({Entry("alice", "\"rmp\":1")});
  const auto made = AccessControl::Make({.key_file = path_}, Clock::Real());
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().ToString(), HasSubstr("keys.json: keys[0]: unknown member 'rmp'"));
  Write({Entry("alice")});
  EXPECT_FALSE(AccessControl::Make({.api_keys = {"alice-key"}, .key_file = path_}, Clock::Real())
                   .has_value())
      << "with or without limits?";
}

TEST_F(Keys, AReplacedSetOfKeysCountsAtOnceAndKeepsClients) {
  Write({Entry("alice"), Entry("bob")});
  const auto access = *AccessControl::Make({.key_file = path_}, Clock::Real());
  net::Request request;
  const auto caller = [&](std::string_view key) {
    request.headers = As(key);
    return access->Admit(request, Scope::kInference);
  };
  const engine::ClientId bob = caller("bob-key")->client();
  EXPECT_NE(bob, caller("alice-key")->client());
  EXPECT_NE(bob, 0u) << "that is nobody's";
  Write({Entry("carol"), Entry("bob", "\"rpm\":5")});
  access->Use(*access->Load());
  EXPECT_FALSE(caller("alice-key").has_value());
  EXPECT_EQ(caller("bob-key")->client(), bob);
  EXPECT_EQ(caller("bob-key")->key->limits.requests_per_minute, 5);
  EXPECT_TRUE(caller("carol-key").has_value());
  Write({});
  access->Use(*access->Load());
  EXPECT_FALSE(caller("bob-key").has_value()) << "no keys are not no access control";
}

TEST_F(Keys, LimitsAreToldOnEveryAnswerOfALimitedKey) {
  Server server(Server::Says("hello"),
                Options({Entry("alice", R"("rpm":10,"tpm":100)"), Entry("bob")}));
  const net::Response whole = server.Call("POST", "/v1/completions", Completion(), As("alice-key"));
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(whole.headers.Find("x-ratelimit-limit-requests"), "10");
  EXPECT_EQ(whole.headers.Find("x-ratelimit-remaining-requests"), "9");
  EXPECT_EQ(whole.headers.Find("x-ratelimit-limit-tokens"), "100");
  const int left = std::stoi(std::string(*whole.headers.Find("x-ratelimit-remaining-tokens")));
  EXPECT_TRUE(left >= 90 && left < 100) << left << ": 4 and 6, and what came again meanwhile";
  const net::Response stream =
      server.Call("POST", "/v1/completions", Completion("\"stream\":true"), As("alice-key"));
  EXPECT_EQ(stream.headers.Find("x-ratelimit-remaining-requests"), "8");
  for (const auto& [method, path, body] : {std::tuple{"GET", "/v1/models", ""},
                                           {"GET", "/v1/models/none", ""},
                                           {"POST", "/v1/completions", "{"},
                                           {"POST", "/tokenize", R"({"prompt":"x"})"}})
    EXPECT_TRUE(
        server.Call(method, path, body, As("alice-key")).headers.Has("x-ratelimit-limit-tokens"))
        << path;
  EXPECT_FALSE(server.Call("GET", "/v1/models", "", As("bob-key"))
                   .headers.Has("x-ratelimit-limit-requests"));
}

TEST_F(Keys, EveryDialectRefusesInItsOwnShape) {
  Server server(Server::Says("x"), Options({Entry("alice", "\"rpm\":1"), Entry("bob")}));
  const std::string chat = R"("messages":[{"role":"user","content":"hi"}])";
  const auto refused = [&](const char* path, const std::string& body) {
    const net::Response response = server.Call("POST", path, body, As("alice-key"));
    EXPECT_EQ(response.status, 429) << path;
    EXPECT_GE(std::stoi(std::string(response.headers.Find("retry-after").value_or("0"))), 20);
    EXPECT_EQ(response.headers.Find("x-ratelimit-remaining-requests"), "0");
    return Parsed(response.body);
  };
  EXPECT_EQ(server.Call("POST", "/v1/completions", Completion(), As("alice-key")).status, 200);
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/v1/responses",
                           "/v1/embeddings", "/tokenize"}) {
    const json::Object error = refused(path, "{}").at("error").as_object();
    EXPECT_EQ(error.at("code").as_string(), "rate_limit_exceeded") << path;
    EXPECT_TRUE(error.at("param").is_null());
  }
  const json::Object message = refused("/v1/messages", "{" + chat + "}");
  EXPECT_EQ(message.at("error").at("type").as_string(), "rate_limit_error");
  EXPECT_TRUE(message.contains("request_id"));
  const json::Object generate = refused("/generate", R"({"text":"x"})");
  EXPECT_TRUE(generate.at("error").is_string());
  EXPECT_EQ(generate.at("code").as_string(), "rate_limit_exceeded");
  EXPECT_EQ(server.Call("GET", "/v1/models", "", As("alice-key")).status, 200) << "not counted";
  EXPECT_EQ(server.Call("POST", "/v1/completions", Completion(), As("bob-key")).status, 200);
}

TEST_F(Keys, TokensOfAnAnswerDelayTheNextRequest) {
  Server server(Server::Says("0123456789"), Options({Entry("alice", "\"tpm\":12")}));
  EXPECT_EQ(
      server.Call("POST", "/v1/completions", Completion("\"stream\":true"), As("alice-key")).status,
      200);
  const net::Response next = server.Call("POST", "/v1/completions", Completion(), As("alice-key"));
  EXPECT_EQ(next.status, 429);
  EXPECT_EQ(Parsed(next.body).at("error").at("type").as_string(), "tokens");
  EXPECT_EQ(next.headers.Find("x-ratelimit-remaining-tokens"), "0");
}

TEST_F(Keys, ConcurrencyIsFreeAgainWithTheAnswer) {
  Brake brake;
  Server server(brake.Options(), Options({Entry("alice", "\"concurrency\":1")}));
  std::thread first([&] {
    EXPECT_EQ(
        server.Call("POST", "/v1/completions", Completion("\"max_tokens\":2"), As("alice-key"))
            .status,
        200);
  });
  brake.AwaitStep();
  const net::Response second =
      server.Call("POST", "/v1/completions", Completion(), As("alice-key"));
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(second.headers.Find("retry-after"), "1");
  brake.Release();
  first.join();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(
        server.Call("POST", "/v1/completions", Completion("\"max_tokens\":1"), As("alice-key"))
            .status,
        200)
        << "the place is back before the answer";
}

TEST_F(Keys, AFullQueueTakesNothingFromTheKey) {
  Brake brake;
  Server server(brake.Options(), Options({Entry("alice", R"("tpm":60,"concurrency":9)")}),
                {.max_running = 1, .queue_length = 2});
  std::thread first([&] {  // In its first step it still counts as one that waits.
    server.Call("POST", "/v1/completions", Completion("\"max_tokens\":2"), As("alice-key"));
  });
  brake.AwaitStep();
  const net::Response refused =
      server.Call("POST", "/v1/completions", Completion("\"n\":2"), As("alice-key"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(Parsed(refused.body).at("error").at("code").as_string(), "queue_full");
  EXPECT_GE(std::stoi(std::string(*refused.headers.Find("x-ratelimit-remaining-tokens"))), 56)
      << "only the first prompt's 4";
  brake.Release();
  first.join();
}

TEST_F(Keys, TheClassIsTheBestPriorityAndTheUsualOne) {
  Server server(Server::Says("x"), Options({Entry("batch", "\"priority\":10"), Entry("plain")}));
  const auto ask = [&](const char* key, const std::string& members) {
    return server.Call("POST", "/v1/completions", Completion(members), As(key));
  };
  EXPECT_EQ(ask("batch-key", "").status, 200);
  EXPECT_EQ(ask("batch-key", "\"priority\":10").status, 200);
  EXPECT_EQ(ask("batch-key", "\"priority\":11").status, 200);
  const net::Response refused = ask("batch-key", "\"priority\":9");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(Parsed(refused.body).at("error").at("param").as_string(), "priority");
  EXPECT_EQ(ask("plain-key", "\"priority\":-1").status, 403);
  EXPECT_EQ(ask("plain-key", "\"priority\":0").status, 200);
}

TEST_F(Keys, OnlyTheKeyThatBeganARequestOrAnAdministratorEndsIt) {
  Brake brake;
  Server server(brake.Options(), Options({Entry("alice"), Entry("bob"),
                                          Entry("root", R"("scopes":["admin","inference"])")}));
  const auto begin = [&](const std::string& id) {
    return std::thread([&server, id] {
      net::Headers headers = As("alice-key");
      headers.Set("X-Request-Id", id);
      EXPECT_EQ(server.Call("POST", "/v1/completions", Completion(), headers).status, 499);
    });
  };
  const auto end = [&](const char* key, const std::string& id) {
    return server.Call("DELETE", "/v1/requests/" + id, "", As(key)).status;
  };
  std::thread first = begin("one"), second = begin("two");
  brake.AwaitStep();
  while (end("root-key", "two") == 404) std::this_thread::yield();  // Until it has arrived.
  EXPECT_EQ(end("bob-key", "one"), 404);
  while (end("alice-key", "one") == 404) std::this_thread::yield();
  brake.Release();
  first.join();
  second.join();
}

TEST_F(Keys, OnlyTheKeyThatBeganAStreamGoesOnWithIt) {
  Server server(
      Server::Says("hello"),
      Options({Entry("alice"), Entry("bob"), Entry("root", R"("scopes":["admin","inference"])")}));
  const net::Response stream = server.Call(
      "POST", "/v1/completions", Completion(R"("stream":true,"stream_options":{"resumable":true})"),
      As("alice-key"));
  ASSERT_EQ(stream.status, 200);
  const size_t at = stream.body.find("cmpl-");
  const std::string id = stream.body.substr(at, stream.body.find(':', at) - at);
  const std::string path = "/v1/requests/" + id + "/events";
  EXPECT_EQ(server.Call("GET", path, "", As("bob-key")).status, 404);
  net::Headers repeated = As("bob-key");
  repeated.Set("Last-Event-ID", id + ":1");
  EXPECT_EQ(server.Call("POST", "/v1/completions", Completion(), repeated).status, 404);
  EXPECT_EQ(server.Call("GET", path, "", As("alice-key")).status, 200);
  EXPECT_EQ(server.Call("GET", path, "", As("root-key")).status, 200);
}

}  // namespace
}  // namespace tessera::server
