// SPDX-License-Identifier: Apache-2.0
#include "net/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/connection_harness.h"

namespace tessera::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Answers with the name and the parameters.
Handler Named(std::string name) {
  return [name](const Request& request, const ResponseWriter& writer) {
    std::string body = name;
    for (const auto& [key, value] : request.params) body += " " + key + "=" + value;
    (void)writer.Send(Response::Text(200, body));
  };
}

Router MakeRouter() {
  Router router;
  router.Add("GET", "/", Named("root"));
  router.Add("GET", "/v1/models", Named("models"));
  router.Add("GET", "/v1/models/{id}", Named("model"));
  router.Add("DELETE", "/v1/models/{id}", Named("delete"));
  router.Add("GET", "/v1/models/{id}/card", Named("card"));
  router.Add("GET", "/v1/models/list", Named("list"));
  router.Add("GET", "/files/{path...}", Named("file"));
  router.Add("GET", "/files/{name}/meta", Named("meta"));
  return router;
}

std::string Ask(const Router& router, std::string_view method, std::string_view target) {
  ConnectionHarness harness(router.AsHandler());
  return harness.Talk(std::string(method) + " " + std::string(target) +
                      " HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(Router, FindsLiteralsCapturesAndTails) {
  const Router router = MakeRouter();
  EXPECT_THAT(Ask(router, "GET", "/"), HasSubstr("\r\n\r\nroot"));
  EXPECT_THAT(Ask(router, "GET", "/v1/models"), HasSubstr("\r\n\r\nmodels"));
  EXPECT_THAT(Ask(router, "GET", "/v1/models/a%2Fb"), HasSubstr("model id=a/b"));
  EXPECT_THAT(Ask(router, "GET", "/v1/models/x/card"), HasSubstr("card id=x"));
  EXPECT_THAT(Ask(router, "DELETE", "/v1/models/x"), HasSubstr("delete id=x"));
  EXPECT_THAT(Ask(router, "GET", "/files/a/b/c"), HasSubstr("file path=a/b/c"));
}

TEST(Router, LiteralWinsOverCaptureAndCaptureOverTail) {
  const Router router = MakeRouter();
  EXPECT_THAT(Ask(router, "GET", "/v1/models/list"), HasSubstr("\r\n\r\nlist"));
  EXPECT_THAT(Ask(router, "GET", "/v1/models/list/card"), HasSubstr("card id=list"))
      << "a literal that leads nowhere backs up";
  EXPECT_THAT(Ask(router, "GET", "/files/a/meta"), HasSubstr("meta name=a"));
  EXPECT_THAT(Ask(router, "GET", "/files/a/other"), HasSubstr("file path=a/other"));
}

TEST(Router, UnknownPathsGoToTheHook) {
  Router router = MakeRouter();
  for (const char* target : {"/nope", "/v1/models/", "/v1/models/x/", "/v1", "/files"})
    EXPECT_THAT(Ask(router, "GET", target), StartsWith("HTTP/1.1 404")) << target;
  router.OnNotFound([](const Request& request, const ResponseWriter& writer) {
    (void)writer.Send(Response::Text(404, "no " + request.path));
  });
  EXPECT_THAT(Ask(router, "GET", "/nope"), HasSubstr("no /nope"));
}

TEST(Router, WrongMethodNamesTheRightOnes) {
  Router router = MakeRouter();
  const std::string reply = Ask(router, "POST", "/v1/models/x");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(reply, HasSubstr("Allow: DELETE, GET, HEAD, OPTIONS\r\n"));
  router.OnMethodNotAllowed(
      [](const Request&, const ResponseWriter& writer, std::string_view allow) {
        (void)writer.Send({405, {{"Allow", std::string(allow)}}, "mine"});
      });
  EXPECT_THAT(Ask(router, "POST", "/v1/models/x"), HasSubstr("\r\n\r\nmine"));
}

TEST(Router, HeadIsServedByGetWithoutABody) {
  const std::string reply = Ask(MakeRouter(), "HEAD", "/v1/models");
  EXPECT_THAT(reply, HasSubstr("Content-Length: 6\r\n"));
  EXPECT_TRUE(reply.ends_with("\r\n\r\n"));
}

TEST(Router, OptionsListsMethodsOrGoesToTheHook) {
  Router router = MakeRouter();
  EXPECT_THAT(Ask(router, "OPTIONS", "/v1/models"), StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(Ask(router, "OPTIONS", "/nope"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask(router, "OPTIONS", "*"), StartsWith("HTTP/1.1 404"));
  router.OnOptions([](const Request&, const ResponseWriter& writer, std::string_view) {
    (void)writer.Send({204, {{"Access-Control-Allow-Origin", "*"}}, ""});
  });
  EXPECT_THAT(Ask(router, "OPTIONS", "/v1/models"), HasSubstr("Access-Control-Allow-Origin: *"));
}

TEST(Router, ListsItsRoutesInOrder) {
  const auto routes = MakeRouter().routes();
  ASSERT_EQ(routes.size(), 8u);
  EXPECT_EQ(routes[3].method + " " + routes[3].pattern, "DELETE /v1/models/{id}");
}

}  // namespace
}  // namespace tessera::net
