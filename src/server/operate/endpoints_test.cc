// SPDX-License-Identifier: Apache-2.0
//
// /admin over a loopback socket, with and without keys.
#include "server/operate/endpoints.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "access/api_key.h"
#include "base/file.h"
#include "support/brake.h"
#include "support/fake_service.h"
#include "support/fixtures.h"

namespace tessera::server::operate {
namespace {

using testing::Brake;
using Server = testing::FakeService;
using ::testing::HasSubstr;

const std::string kCompletion = R"({"model":"org/fake","prompt":"say\n","temperature":0})";
const std::string kConfirm = R"({"confirm":"org/fake"})";

json::Object Parsed(const net::Response& response) {
  return json::Parse(response.body, {}, "answer").value().as_object();
}

TEST(Admin, WithoutKeysItIsForThisMachineOnly) {
  Server server(Server::Says("x"));
  EXPECT_EQ(server.Call("GET", "/admin/stats").status, 200);
  for (const auto& [name, value] : {std::pair{"X-Forwarded-For", "10.0.0.1"},
                                    {"Origin", "http://example.org"},
                                    {"Host", "example.org"}}) {
    const net::Response response = server.Call("GET", "/admin/stats", "", {{name, value}});
    EXPECT_EQ(response.status, 403) << name;
    EXPECT_EQ(Parsed(response).at("error").at("code").as_string(), "not_local");
  }
}

TEST(Admin, WithKeysItNeedsTheScope) {
  testing::TempDir folder;
  const std::string path = (folder.path() / "keys.json").string();
  const auto write = [&](std::string_view members) {
    ASSERT_TRUE(
        WriteFileAtomic(path, fmt::format(R"({{"keys":[{{"name":"root",{}"hash":"sha256:{}",)"
                                          R"("scopes":["admin"]}}]}})",
                                          members, access::DigestOf("root-key")))
            .ok());
  };
  write("");
  Server server(Server::Says("x"), {.access = {.api_keys = {"plain"}, .key_file = path}});
  const net::Headers root{{"X-Api-Key", "root-key"}}, plain{{"X-Api-Key", "plain"}};
  for (const auto& [method, call] :
       {std::pair{"GET", "stats"}, {"POST", "reload"}, {"POST", "drain"}}) {
    const std::string target = fmt::format("/admin/{}", call);
    EXPECT_EQ(server.Call(method, target).status, 401) << call;
    EXPECT_EQ(server.Call(method, target, "", plain).status, 403) << call;
  }
  EXPECT_EQ(server.Call("POST", "/v1/completions", kCompletion, root).status, 403);

  write(R"("rpm":7,)");
  const net::Response reloaded = server.Call("POST", "/admin/reload", "", root);
  ASSERT_EQ(reloaded.status, 200) << reloaded.body;
  EXPECT_EQ(Parsed(reloaded).at("keys").as_int64(), 2);
  write(R"("rmp":8,)");
  const net::Response refused = server.Call("POST", "/admin/reload", "", root);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("keys[0]: unknown member 'rmp'"));
  const json::Object stats = Parsed(server.Call("GET", "/admin/stats", "", root));
  EXPECT_EQ(stats.at("keys").at(1).at("rpm").as_int64(), 7) << "the old one stays";
}

TEST(Admin, StatsCountEachKey) {
  testing::TempDir folder;
  const std::string path = (folder.path() / "keys.json").string();
  const std::string entry = R"({{"name":"{0}","hash":"sha256:{1}","scopes":["{2}"]{3}}})";
  ASSERT_TRUE(WriteFileAtomic(
                  path, fmt::format("{{\"keys\":[{},{}]}}",
                                    fmt::format(fmt::runtime(entry), "root", access::DigestOf("r"),
                                                "admin", ""),
                                    fmt::format(fmt::runtime(entry), "alice", access::DigestOf("a"),
                                                "inference", R"(,"rpm":2)")))
                  .ok());
  Server server(Server::Says("hello"), {.access = {.key_file = path}});
  for (const int status : {200, 200, 429})
    EXPECT_EQ(server.Call("POST", "/v1/completions", kCompletion, {{"X-Api-Key", "a"}}).status,
              status);
  const net::Response response = server.Call("GET", "/admin/stats", "", {{"X-Api-Key", "r"}});
  const json::Object body = Parsed(response);
  const json::Value& alice = body.at("keys").at(1);
  EXPECT_EQ(alice.at("name").as_string(), "alice");
  EXPECT_EQ(alice.at("requests").as_int64(), 3);
  EXPECT_EQ(alice.at("refused").as_int64(), 1);
  EXPECT_EQ(alice.at("open").as_int64(), 0);
  EXPECT_EQ(alice.at("prompt_tokens").as_int64(), 8);
  EXPECT_EQ(alice.at("completion_tokens").as_int64(), 12);
  EXPECT_EQ(response.body.find(access::DigestOf("a")), response.body.npos);
}

TEST(Admin, StatsTellWhatIsThere) {
  Server server(Server::Says("hello"));
  EXPECT_EQ(server.Call("POST", "/v1/completions", kCompletion).status, 200);
  const json::Object stats = Parsed(server.Call("GET", "/admin/stats"));
  EXPECT_EQ(stats.at("model").as_string(), "org/fake");
  EXPECT_EQ(stats.at("engine").at("generation_tokens").as_int64(), 6);
  EXPECT_EQ(stats.at("engine").at("finished").at("stop").as_int64(), 1);
  EXPECT_FALSE(stats.at("engine").at("draining").as_bool());
  EXPECT_EQ(stats.at("kv").at("pages_total").as_int64(), 32);
  EXPECT_GE(stats.at("http").at("requests").as_int64(), 2);
  EXPECT_TRUE(stats.at("keys").as_array().empty());
}

TEST(Admin, ADrainIsConfirmedByName) {
  Server server(Server::Says("x"));
  for (const char* body :
       {"", "{}", R"({"confirm":"other"})", R"({"confirm":true})",
        R"({"confirm":"org/fake","timeout":-1})", R"({"confirm":"org/fake","timeout":86401})",
        R"({"confirm":"org/fake","force":true})", "[]", "{"}) {
    EXPECT_EQ(server.Call("POST", "/admin/drain", body).status, 400) << body;
    EXPECT_EQ(server.Call("GET", "/readyz").status, 200);
  }
}

TEST(Admin, ADrainWaitsForWhatRunsAndReports) {
  Brake brake;
  Server server(brake.Options());
  std::thread running([&] {
    EXPECT_EQ(
        server
            .Call("POST", "/v1/completions", R"({"model":"org/fake","prompt":"x","max_tokens":2})")
            .status,
        200)
        << "it may finish";
  });
  brake.AwaitStep();
  json::Object report;
  std::thread draining([&] { report = Parsed(server.Call("POST", "/admin/drain", kConfirm)); });
  while (server.Call("GET", "/health").status == 200) std::this_thread::yield();
  EXPECT_EQ(server.Call("POST", "/v1/completions", kCompletion).status, 503);
  EXPECT_EQ(server.Call("GET", "/readyz").status, 503);
  EXPECT_EQ(server.Call("GET", "/livez").status, 200);
  brake.Release();
  draining.join();
  running.join();
  EXPECT_TRUE(report.at("finished").as_bool());
  EXPECT_EQ(report.at("sequences").as_int64(), 1);
  const json::Object again = Parsed(server.Call("POST", "/admin/drain", kConfirm));
  EXPECT_TRUE(again.at("finished").as_bool()) << "asked again it says the same";
}

TEST(Admin, ADrainCutsWhatTakesTooLong) {
  Brake brake;
  Server server(brake.Options());
  std::thread running([&] {
    EXPECT_EQ(server
                  .Call("POST", "/v1/completions",
                        R"({"model":"org/fake","prompt":"x","max_tokens":200})")
                  .status,
              503);
  });
  brake.AwaitStep();
  std::thread draining([&] {
    const json::Object report =
        Parsed(server.Call("POST", "/admin/drain", R"({"confirm":"org/fake","timeout":0})"));
    EXPECT_FALSE(report.at("finished").as_bool());
    EXPECT_THAT(std::string(report.at("message").as_string()), HasSubstr("cut"));
  });
  while (server.Call("GET", "/health").status == 200) std::this_thread::yield();
  // The order to end is given within microseconds of that.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  brake.Release();
  draining.join();
  running.join();
}

}  // namespace
}  // namespace tessera::server::operate
