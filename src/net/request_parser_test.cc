// SPDX-License-Identifier: Apache-2.0
#include "net/request_parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace tessera::net {
namespace {

using State = RequestParser::State;

constexpr std::string_view kHost = "Host: x\r\n";

struct Outcome {
  int status = 0;  // Of the refusal; 0: none.
  std::string code;
  std::vector<Request> requests;
};

/// Feeds `bytes` in pieces of `grain`, as a connection does.
Outcome Parse(std::string_view bytes, size_t grain = SIZE_MAX, Limits limits = {}) {
  const BodyReceiverHook none;
  RequestParser parser(limits, none);
  Outcome outcome;
  std::string waiting;
  while (!bytes.empty()) {
    waiting += bytes.substr(0, grain);
    bytes.remove_prefix(std::min(grain, bytes.size()));
    while (!waiting.empty()) {
      const size_t used = parser.Feed(waiting);
      waiting.erase(0, used);
      if (parser.state() == State::kFailed) {
        outcome.status = parser.error().status;
        outcome.code = parser.error().code;
        return outcome;
      }
      if (parser.state() == State::kDone) {
        outcome.requests.push_back(parser.Take());
        continue;
      }
      if (used == 0) break;
    }
  }
  return outcome;
}

std::string Post(std::string_view headers, std::string_view body) {
  return fmt::format("POST /p HTTP/1.1\r\n{}{}\r\n{}", kHost, headers, body);
}

TEST(RequestParser, ReadsARequest) {
  const Outcome outcome = Parse(Post("A:  b c\t\r\nContent-Length: 3\r\n", "xyz"));
  ASSERT_EQ(outcome.requests.size(), 1u) << outcome.code;
  const Request& request = outcome.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/p");
  EXPECT_EQ(request.headers.Find("a"), "b c");
  EXPECT_EQ(request.body, "xyz");
  EXPECT_EQ(request.version_minor, 1);
}

TEST(RequestParser, EverySplitGivesTheSameRequests) {
  const std::string bytes =
      "\r\nGET http://h:80/a?b=1 HTTP/1.1\r\nHost: x\r\n\r\n" +
      Post("Transfer-Encoding: chunked\r\n", "3;ext=\"v\"\r\nabc\r\n1\r\nd\r\n0\r\nT: r\r\n\r\n") +
      Post("Content-Length: 2\r\n", "ef") + "OPTIONS * HTTP/1.0\r\n\r\n";
  for (size_t grain = 1; grain <= bytes.size(); ++grain) {
    const Outcome outcome = Parse(bytes, grain);
    ASSERT_EQ(outcome.requests.size(), 4u) << grain << " " << outcome.code;
    EXPECT_EQ(outcome.requests[0].path, "/a");
    EXPECT_EQ(outcome.requests[0].Query("b"), "1");
    EXPECT_EQ(outcome.requests[1].body, "abcd");
    EXPECT_FALSE(outcome.requests[1].headers.Has("T")) << "trailers are dropped";
    EXPECT_EQ(outcome.requests[2].body, "ef");
    EXPECT_EQ(outcome.requests[3].version_minor, 0);
  }
}

TEST(RequestParser, AmbiguousFramingIsRefused) {
  const struct {
    const char* headers;
    int status;
  } cases[] = {
      {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", 400},
      {"Content-Length: 0\r\nContent-Length: 40\r\n", 400},
      {"Content-Length: 4\r\nContent-Length: 4\r\n", 400},
      {"Content-Length: 0, 40\r\n", 400},
      {"Content-Length: +0\r\n", 400},
      {"Content-Length: -1\r\n", 400},
      {"Content-Length: 0x0\r\n", 400},
      {"Content-Length:\r\n", 400},
      {"Content-Length: 1 2\r\n", 400},
      {"Content-Length: 99999999999999999999999\r\n", 413},
      {"Transfer-Encoding: xchunked\r\n", 501},
      {"Transfer-Encoding: gzip, chunked\r\n", 501},
      {"Transfer-Encoding: chunked, chunked\r\n", 501},
      {"Transfer-Encoding: \"chunked\"\r\n", 501},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400},
      {"Content-Length : 0\r\n", 400},
      {"X-A: b\r\n Content-Length: 0\r\nContent-Length: 0\r\n", 400},
      {"X-A: b\r\n\tc\r\n", 400},
      {"garbage\r\nContent-Length: 0\r\n", 400},
      {": no name\r\n", 400},
      {"X A: b\r\n", 400},
      {"X-A: b\n", 400},
      {"X-A: b\rX-B: c\r\n", 400},
      {"Expect: a-miracle\r\n", 417},
      {"Host: y\r\n", 400},
  };
  for (const auto& [headers, status] : cases)
    for (const size_t grain : {size_t{1}, SIZE_MAX}) {
      const Outcome outcome = Parse(Post(headers, "0\r\n\r\nGET /smuggled HTTP/1.1\r\n"), grain);
      EXPECT_EQ(outcome.status, status) << headers << outcome.code;
      EXPECT_TRUE(outcome.requests.empty()) << headers;
    }
  EXPECT_EQ(Parse(Post(std::string_view("X-A: a\0b\r\n", 10), "")).status, 400);
}

TEST(RequestParser, Http10TakesNoTransferEncoding) {
  EXPECT_EQ(Parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status, 400);
}

TEST(RequestParser, BadRequestLinesAreRefused) {
  const struct {
    const char* head;
    int status;
  } cases[] = {
      {"GET /x HTTP/9.9\r\nHost: x\r\n\r\n", 505},
      {"GET /x HTTP/1.2\r\nHost: x\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\n", 505},
      {"GET /x HTTP/11\r\nHost: x\r\n\r\n", 400},
      {"GET /x http/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /x\r\nHost: x\r\n\r\n", 400},
      {"GET  /x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /x  HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET\t/x\tHTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"G\x01T /x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"G@T /x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {" GET /x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET http:///x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET http://a@b/x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /x HTTP/1.1\r\n\r\n", 400},
      {"GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /x HTTP/1.1\nHost: x\n\n", 400},
  };
  for (const auto& [head, status] : cases)
    for (const size_t grain : {size_t{1}, SIZE_MAX})
      EXPECT_EQ(Parse(head, grain).status, status) << head;
  EXPECT_EQ(Parse("\x16\x03\x01").status, 400) << "TLS is refused at its first byte";
}

TEST(RequestParser, BadChunksAreRefused) {
  for (const char* chunks : {"zz\r\nab\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\nab\r\n", "-1\r\n\r\n",
                             "2\r\nabXX0\r\n\r\n", " 1\r\na\r\n", "+1\r\na\r\n", "0x1\r\na\r\n",
                             "1\na\r\n", "\r\n", "1\r\na\n0\r\n\r\n", "0\r\nbad trailer\r\n\r\n"})
    for (const size_t grain : {size_t{1}, SIZE_MAX}) {
      const Outcome outcome = Parse(Post("Transfer-Encoding: chunked\r\n", chunks), grain);
      EXPECT_TRUE(outcome.status == 400 || outcome.status == 413) << chunks << outcome.status;
      EXPECT_TRUE(outcome.requests.empty());
    }
}

TEST(RequestParser, BodyLimitAdmitsNAndRefusesNPlusOne) {
  const Limits limits{.body_bytes = 100};
  for (const size_t size : {99, 100, 101}) {
    const std::string body(size, 'x');
    const int expected = size <= 100 ? 0 : 413;
    const Outcome plain =
        Parse(Post(fmt::format("Content-Length: {}\r\n", size), body), SIZE_MAX, limits);
    EXPECT_EQ(plain.status, expected);
    const Outcome one = Parse(
        Post("Transfer-Encoding: chunked\r\n", fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", size, body)),
        SIZE_MAX, limits);
    EXPECT_EQ(one.status, expected);
    std::string chunks;
    for (size_t i = 0; i < size; ++i) chunks += "1\r\nx\r\n";
    const Outcome many =
        Parse(Post("Transfer-Encoding: chunked\r\n", chunks + "0\r\n\r\n"), SIZE_MAX, limits);
    EXPECT_EQ(many.status, expected);
    EXPECT_EQ(many.requests.size(), size <= 100 ? 1u : 0u);
  }
}

TEST(RequestParser, AnnouncedLargeBodyIsRefusedBeforeItComes) {
  const Limits limits{.body_bytes = 100};
  EXPECT_EQ(Parse(Post("Content-Length: 101\r\n", ""), SIZE_MAX, limits).status, 413);
}

TEST(RequestParser, HeaderBytesLimitAdmitsNAndRefusesNPlusOne) {
  const std::string head = Post("", "");
  for (const int off : {-1, 0, 1}) {
    const Limits limits{.header_bytes = static_cast<uint32_t>(static_cast<int>(head.size()) - off)};
    for (const size_t grain : {size_t{1}, SIZE_MAX})
      EXPECT_EQ(Parse(head, grain, limits).status, off == 1 ? 431 : 0) << off;
  }
}

TEST(RequestParser, EndlessHeadsAreRefusedAtTheLimit) {
  const Limits limits{.header_bytes = 1000, .target_bytes = 100};
  EXPECT_EQ(Parse("GET /" + std::string(5000, 'a'), 7, limits).status, 414);
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nA: " + std::string(5000, 'a'), 7, limits).status, 431);
}

TEST(RequestParser, HeaderCountLimitAdmitsNAndRefusesNPlusOne) {
  const Limits limits{.header_count = 5};
  for (const int count : {4, 5, 6}) {
    std::string headers;
    for (int i = 1; i < count; ++i) headers += fmt::format("X-{}: 1\r\n", i);
    EXPECT_EQ(Parse(Post(headers, ""), SIZE_MAX, limits).status, count <= 5 ? 0 : 431);
  }
}

TEST(RequestParser, TargetLimitAdmitsNAndRefusesNPlusOne) {
  const Limits limits{.target_bytes = 50};
  for (const size_t size : {49, 50, 51}) {
    const std::string target = "/" + std::string(size - 1, 'a');
    EXPECT_EQ(
        Parse(fmt::format("GET {} HTTP/1.1\r\n{}\r\n", target, kHost), SIZE_MAX, limits).status,
        size <= 50 ? 0 : 414);
  }
}

TEST(RequestParser, ChunkLineLimitEndsEndlessExtensions) {
  const Limits limits{.chunk_line_bytes = 64};
  const auto status = [&](size_t extension, size_t grain) {
    return Parse(Post("Transfer-Encoding: chunked\r\n",
                      "1;" + std::string(extension, 'e') + "\r\nx\r\n0\r\n\r\n"),
                 grain, limits)
        .status;
  };
  EXPECT_EQ(status(40, 1), 0);
  EXPECT_EQ(status(400, 1), 400);
  EXPECT_EQ(
      Parse(Post("Transfer-Encoding: chunked\r\n", "0\r\n" + std::string(400, 't')), 1, limits)
          .status,
      400)
      << "endless trailer";
}

TEST(RequestParser, ChunkOverheadIsBounded) {
  const Limits limits{.body_bytes = 1000, .chunk_line_bytes = 64};
  std::string chunks;
  for (int i = 0; i < 900; ++i) chunks += "1;" + std::string(50, 'e') + "\r\nx\r\n";
  EXPECT_EQ(Parse(Post("Transfer-Encoding: chunked\r\n", chunks), 100, limits).status, 413);
}

}  // namespace
}  // namespace tessera::net
