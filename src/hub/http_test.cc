// SPDX-License-Identifier: Apache-2.0
#include "hub/http.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "hub/curl_http.h"
#include "hub/limits.h"

namespace tessera::hub {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

HttpRequest To(std::string url, std::string bearer = "") {
  HttpRequest request;
  request.url = std::move(url);
  request.bearer = std::move(bearer);
  return request;
}

/// Answers each address with a redirect or a body, and keeps what it was asked.
class ScriptedHttp final : public Http {
 public:
  std::map<std::string, std::string> redirects;
  std::vector<HttpRequest> asked;

  Result<HttpHead> OneHop(const HttpRequest& request, const HttpSink& sink) override {
    asked.push_back(request);
    HttpHead head;
    head.url = request.url;
    if (const auto it = redirects.find(request.url); it != redirects.end()) {
      head.status = 302;
      head.headers = {{"location", it->second}};
      return head;
    }
    head.status = 200;
    if (sink.on_head) TESSERA_RETURN_IF_ERROR(sink.on_head(head));
    TESSERA_RETURN_IF_ERROR(sink.on_body(AsBytes("body")));
    return head;
  }
};

TEST(Redirects, KeepTheTokenAtItsOrigin) {
  ScriptedHttp http;
  http.redirects = {{"https://hub/a", "/b"},
                    {"https://hub/b", "https://cdn/c?sig=1"},
                    {"https://cdn/c?sig=1", "https://hub/d"}};
  const auto text = GetText(http, To("https://hub/a", "secret"), 100);
  ASSERT_TRUE(text.has_value()) << text.error().ToString();
  EXPECT_EQ(text->body, "body");
  ASSERT_EQ(http.asked.size(), 4u);
  EXPECT_EQ(http.asked[1].url, "https://hub/b");
  EXPECT_EQ(http.asked[1].bearer, "secret");
  EXPECT_EQ(http.asked[2].bearer, "");
  EXPECT_EQ(http.asked[3].bearer, "") << "what left the origin does not come back with a token";
}

TEST(Redirects, OtherPortsAndSchemesAreOtherOrigins) {
  EXPECT_EQ(OriginOf("https://Hub/x"), OriginOf("HTTPS://hub:443/"));
  EXPECT_NE(OriginOf("https://hub/x"), OriginOf("https://hub:8443/x"));
  EXPECT_NE(OriginOf("https://hub/x"), OriginOf("http://hub/x"));
  EXPECT_EQ(OriginOf("http://user@hub/"), "http://hub:80");
  EXPECT_EQ(OriginOf("http://[::1]/x"), "http://[::1]:80");
  EXPECT_EQ(OriginOf("http://[::1]:8/x"), "http://[::1]:8");
  EXPECT_EQ(OriginOf("no address"), "");
}

TEST(Redirects, EndAtALimitAndNeverLeaveHttps) {
  ScriptedHttp http;
  http.redirects = {{"https://hub/loop", "https://hub/loop"},
                    {"https://hub/down", "http://hub/x"},
                    {"https://hub/file", "file:///etc/passwd"}};
  EXPECT_THAT(GetText(http, To("https://hub/loop"), 1).error().message(),
              HasSubstr("redirects more than"));
  EXPECT_EQ(http.asked.size(), static_cast<size_t>(kMaxRedirects) + 1);
  EXPECT_THAT(GetText(http, To("https://hub/down"), 1).error().message(),
              HasSubstr("from https to http"));
  EXPECT_THAT(GetText(http, To("https://hub/file"), 1).error().message(), HasSubstr("not http"));
}

TEST(GetText, HasALimit) {
  ScriptedHttp http;
  EXPECT_FALSE(GetText(http, To("https://hub/x"), 3).has_value());
  EXPECT_TRUE(GetText(http, To("https://hub/x"), 4).has_value());
}

/// A server on this machine that answers every connection with `head` and then `drip` for ever.
class Dripper {
 public:
  Dripper(std::string head, std::string drip, std::chrono::milliseconds pause)
      : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    socklen_t size = sizeof(address);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, head = std::move(head), drip = std::move(drip), pause] {
      const int peer = ::accept(listener_, nullptr, nullptr);
      bool open = ::send(peer, head.data(), head.size(), MSG_NOSIGNAL) > 0;
      for (; open; std::this_thread::sleep_for(pause))
        open = ::send(peer, drip.data(), drip.size(), MSG_NOSIGNAL) > 0;
      ::close(peer);
    });
  }
  ~Dripper() {
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/x"; }

 private:
  int listener_;
  int port_ = 0;
  std::thread thread_;
};

TEST(CurlHttp, AnAnswerThatComesByteByByteEnds) {
  const Dripper server("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "[",
                       std::chrono::milliseconds(10));
  const auto http = NewCurlHttp({});
  ASSERT_TRUE(http.has_value());
  HttpRequest request = To(server.url());
  request.time_limit = std::chrono::milliseconds(300);
  const auto text = GetText(**http, request, 1 << 20);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code(), Code::kUnavailable);
  EXPECT_THAT(text.error().message(), HasSubstr("timed out"));
}

TEST(CurlHttp, AHeaderWithoutEndIsRefusedByName) {
  for (const std::string& drip :
       {"X-A: " + std::string(1000, 'a') + "\r\n", std::string(1000, 'a')}) {
    const Dripper server("HTTP/1.1 200 OK\r\nX: ", drip, std::chrono::milliseconds(0));
    const auto http = NewCurlHttp({});
    ASSERT_TRUE(http.has_value());
    const auto text = GetText(**http, To(server.url()), 1 << 20);
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().code(), Code::kResourceExhausted);
    EXPECT_THAT(text.error().message(), AllOf(HasSubstr(server.url()), HasSubstr("header")));
  }
}

TEST(ContentRange, IsReadOrRefused) {
  const auto range = ParseContentRange("bytes 10-19/100");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->range, (ByteRange{10, 20}));
  EXPECT_EQ(range->total, 100u);
  for (const char* bad :
       {"", "bytes */100", "bytes 10-9/100", "bytes 10-100/100", "bytes 1-2", "items 1-2/3",
        "bytes a-2/3", "bytes 1-2/*", "bytes -2/3", "bytes 1-99999999999999999999/3"})
    EXPECT_FALSE(ParseContentRange(bad).has_value()) << bad;
}

TEST(RetryAfter, ComparesTheServersClockWithItself) {
  HttpHead head;
  head.headers = {{"date", "Thu, 01 Jan 2015 00:00:00 GMT"},
                  {"retry-after", "Thu, 01 Jan 2015 00:00:07 GMT"}};
  EXPECT_EQ(RetryAfter(head), std::chrono::seconds(7));
  head.headers = {{"retry-after", "3"}};
  EXPECT_EQ(RetryAfter(head), std::chrono::seconds(3));
  head.headers = {{"ratelimit", "\"resolvers\";r=0;t=12"}};
  EXPECT_EQ(RetryAfter(head), std::chrono::seconds(12));
  head.headers = {{"retry-after", "99999999999999"}};
  EXPECT_EQ(RetryAfter(head), std::chrono::hours(24));
  head.headers = {{"retry-after", "soon"}};
  EXPECT_EQ(RetryAfter(head), std::nullopt);
}

TEST(EscapePath, KeepsSlashesOnly) {
  EXPECT_EQ(EscapePath("a b/c%?#.json"), "a%20b/c%25%3F%23.json");
}

}  // namespace
}  // namespace tessera::hub
