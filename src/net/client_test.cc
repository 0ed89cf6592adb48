// SPDX-License-Identifier: Apache-2.0
#include "net/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "net/router.h"
#include "net/server.h"

namespace tessera::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<Server> Serve(Handler handler, Limits limits = {}) {
  auto server = Server::Start({.limits = limits}, std::move(handler));
  EXPECT_TRUE(server.has_value());
  return std::move(*server);
}

void Echo(Request request, const ResponseWriter& writer) {
  (void)writer.Send(
      {200, {{"X-Method", request.method}, {"X-Path", request.path}}, std::move(request.body)});
}

TEST(HttpClient, CallsAndReusesItsConnection) {
  const auto server = Serve(Echo);
  HttpClient client({.port = server->port()});
  for (const char* method : {"GET", "POST", "PUT", "DELETE"}) {
    const auto reply = client.Call({.method = method, .target = "/x%20y", .body = "data"});
    ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
    EXPECT_EQ(reply->headers.Find("x-method"), method);
    EXPECT_EQ(reply->headers.Find("x-path"), "/x y");
    EXPECT_EQ(reply->body, "data");
  }
  const auto head = client.Call({.method = "HEAD", .target = "/"});
  ASSERT_TRUE(head.has_value()) << head.error().ToString();
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(server->stats().connections_accepted, 1u);
}

TEST(HttpClient, RetriesOnceWhenAKeptConnectionWasClosed) {
  const auto server = Serve(Echo, Limits{.idle_timeout = milliseconds(1)});
  HttpClient client({.port = server->port()});
  EXPECT_TRUE(client.Call({}).has_value());
  while (server->stats().connections_open > 0) std::this_thread::yield();
  EXPECT_TRUE(client.Call({}).has_value());
  EXPECT_EQ(server->stats().connections_accepted, 2u);
}

TEST(HttpClient, RefusesRequestsThatWouldSplit) {
  HttpClient client({.port = 1});
  EXPECT_EQ(client.Call({.method = "G ET"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(client.Call({.target = "/a\r\nX: y"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(client.Call({.headers = {{"A", "b\nc"}}}).error().code(), Code::kInvalidArgument);
}

TEST(HttpClient, SaysWhyItCannotConnect) {
  uint16_t port = 0;
  { port = Serve(Echo)->port(); }
  HttpClient client({.port = port});
  const auto reply = client.Call({});
  EXPECT_EQ(reply.error().code(), Code::kUnavailable);
  EXPECT_THAT(reply.error().ToString(), ::testing::HasSubstr("refused"));
  HttpClient nowhere({.host = "no-such-host.invalid"});
  EXPECT_EQ(nowhere.Call({}).error().code(), Code::kNotFound);
}

TEST(HttpClient, TimesOutOnSilence) {
  std::optional<ResponseWriter> held;
  const auto server =
      Serve([&](const Request&, ResponseWriter writer) { held.emplace(std::move(writer)); });
  HttpClient client({.port = server->port(), .idle_timeout = milliseconds(50)});
  EXPECT_EQ(client.Call({}).error().code(), Code::kDeadlineExceeded);
}

TEST(HttpClient, TruncatedStreamIsAnError) {
  const auto server = Serve([](const Request&, const ResponseWriter& writer) {
    (void)writer.StartStream(200, {});
    (void)writer.Write("half");
    // The delivered half and the cut must not be one event for the client.
    while (writer.unsent_bytes() > 0) std::this_thread::yield();
  });
  HttpClient client({.port = server->port()});
  std::string body;
  const auto reply = client.Stream({}, nullptr, [&](std::string_view bytes) {
    body += bytes;
    return true;
  });
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(body, "half");
}

TEST(HttpClient, BodyLimitHolds) {
  const auto server = Serve(Echo);
  HttpClient client({.port = server->port(), .body_bytes_max = 10});
  EXPECT_TRUE(client.Call({.method = "POST", .body = std::string(10, 'x')}).has_value());
  EXPECT_EQ(client.Call({.method = "POST", .body = std::string(11, 'x')}).error().code(),
            Code::kResourceExhausted);
}

TEST(HttpClient, CallbacksMayEndTheCall) {
  const auto server = Serve(Echo);
  HttpClient client({.port = server->port()});
  const auto no_head = client.Stream(
      {}, [](const Response&) { return false; }, [](std::string_view) { return true; });
  EXPECT_EQ(no_head.error().code(), Code::kCancelled);
  const auto no_body = client.Stream({.method = "POST", .body = "x"}, nullptr,
                                     [](std::string_view) { return false; });
  EXPECT_EQ(no_body.error().code(), Code::kCancelled);
}

TEST(HttpClient, CancelEndsACallOnAnotherThread) {
  std::optional<ResponseWriter> held;
  HttpClient* to_cancel = nullptr;
  auto server = Serve([&](const Request&, ResponseWriter writer) {
    held.emplace(std::move(writer));
    to_cancel->Cancel();
  });
  HttpClient client({.port = server->port()});
  to_cancel = &client;
  EXPECT_EQ(client.Call({}).error().code(), Code::kCancelled);
  server.reset();  // Its worker may still be inside Cancel, which the client must outlive.
}

}  // namespace
}  // namespace tessera::net
