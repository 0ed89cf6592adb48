// SPDX-License-Identifier: Apache-2.0
//
// One stream by itself: its bytes, its journal, its clock. No sockets, no threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "net/errors.h"
#include "net/exchange.h"
#include "server/event_streams.h"
#include "server/limits.h"

namespace tessera::server {
namespace {

using std::chrono::seconds;

struct TurnedClock : Clock {
  TimePoint Now() const override { return now; }
  int64_t UnixSeconds() const override { return 0; }
  TimePoint now{seconds(1000)};
};

/// A client's connection: what it was sent, and that it may break.
struct Peer {
  Reply MakeReply() const { return Reply(net::ResponseWriter(exchange), {}); }
  std::string Received() {
    bytes += exchange->Take().bytes;
    return bytes;
  }
  std::shared_ptr<net::Exchange> exchange = std::make_shared<net::Exchange>(
      net::Exchange::Config{.is_http11 = false,  // Streams without chunk framing.
                            .unsent_max = 64u << 20,
                            .is_draining = std::make_shared<const std::atomic<bool>>(false),
                            .error_hook = net::DefaultErrorResponse},
      [] {});
  std::string bytes;
};

/// What follows the head.
std::string BodyOf(Peer* peer) {
  const std::string all = peer->Received();
  const size_t end = all.find("\r\n\r\n");
  return end == all.npos ? "" : all.substr(end + 4);
}

TEST(EventStream, TheHeadWaitsForTheFirstEvent) {
  TurnedClock clock;
  Peer peer;
  EventStream stream(peer.MakeReply(), &clock);
  EXPECT_EQ(peer.Received(), "");
  stream.SendData("a");
  EXPECT_EQ(BodyOf(&peer), "data: a\n\n");
}

TEST(EventStream, PingsFillSilenceAndNothingElse) {
  TurnedClock clock;
  Peer peer;
  EventStream stream(peer.MakeReply(), &clock);
  const auto after = [&](int pause) {
    clock.now += seconds(pause);
    stream.PingIfSilent(clock.now, seconds(10));
    return BodyOf(&peer);
  };
  EXPECT_EQ(after(9), "");
  EXPECT_EQ(after(1), ": ping\n\n");
  EXPECT_EQ(after(9), ": ping\n\n");
  stream.SendData("a");
  EXPECT_EQ(after(9), ": ping\n\ndata: a\n\n");
  EXPECT_EQ(after(1), ": ping\n\ndata: a\n\n: ping\n\n");
  stream.Finish();
  EXPECT_EQ(after(100), ": ping\n\ndata: a\n\n: ping\n\n");
}

TEST(EventStream, AJournalHoldsAsMuchAsTheLimitSays) {
  for (const size_t excess : {0, 1}) {
    TurnedClock clock;
    Peer first;
    EventStream stream(first.MakeReply(), &clock, "s");
    stream.SendData("1");  // "id: s:1\ndata: 1\n\n": 17 bytes.
    stream.SendData(std::string(kResumeBytesMax - 17 - 16 + excess, 'x'));
    Peer second;
    const Reply reply = second.MakeReply();  // Left to us on an error.
    const Status attached = stream.Attach(reply, 0);
    EXPECT_EQ(attached.code(), excess == 0 ? Code::kOk : Code::kOutOfRange);
    EXPECT_EQ(BodyOf(&second).size(), excess == 0 ? kResumeBytesMax : 0);
    Peer third;
    EXPECT_TRUE(stream.Attach(third.MakeReply(), 1).ok()) << "the newest are kept";
  }
}

TEST(EventStream, ANewConnectionGoesOnAndTheOldOneIsCut) {
  TurnedClock clock;
  Peer first, second, third;
  EventStream stream(first.MakeReply(), &clock, "s");
  stream.SendData("1");
  stream.SendData("2");
  EXPECT_EQ(stream.Attach(third.MakeReply(), 3).code(), Code::kInvalidArgument);
  ASSERT_TRUE(stream.Attach(second.MakeReply(), 1).ok());
  EXPECT_TRUE(first.exchange->is_broken());
  stream.SendData("3");
  stream.Finish();
  EXPECT_EQ(BodyOf(&second), "id: s:2\ndata: 2\n\nid: s:3\ndata: 3\n\n");
  EXPECT_TRUE(second.exchange->is_answered());
}

TEST(EventStream, AFailureBeforeTheFirstEventIsToldAgain) {
  TurnedClock clock;
  Peer first, second;
  EventStream stream(first.MakeReply(), &clock, "s");
  stream.SendWhole(net::Response::Json(500, "{}"));
  ASSERT_TRUE(stream.Attach(second.MakeReply(), 0).ok());
  EXPECT_EQ(second.exchange->status(), 500);
}

TEST(EventStream, AClientIsWaitedForAsLongAsTheGraceLasts) {
  TurnedClock clock;
  Peer first, second;
  EventStream stream(first.MakeReply(), &clock, "s");
  int abandoned = 0;
  stream.OnAbandon([&] { ++abandoned; });
  stream.SendData("1");
  const auto is_forgotten = [&](int pause) {
    clock.now += seconds(pause);
    return stream.IsForgotten(clock.now, seconds(60));
  };
  EXPECT_FALSE(is_forgotten(1000)) << "it is there";
  first.exchange->Disconnect();
  EXPECT_FALSE(is_forgotten(0));
  EXPECT_FALSE(is_forgotten(59));
  ASSERT_TRUE(stream.Attach(second.MakeReply(), 1).ok());
  EXPECT_FALSE(is_forgotten(1000));
  second.exchange->Disconnect();
  EXPECT_FALSE(is_forgotten(0));
  EXPECT_EQ(abandoned, 0);
  EXPECT_TRUE(is_forgotten(60));
  EXPECT_EQ(abandoned, 1);
}

TEST(EventStream, ACompleteAnswerIsKeptAsLong) {
  TurnedClock clock;
  Peer peer;
  EventStream stream(peer.MakeReply(), &clock, "s");
  stream.SendData("1");
  stream.Finish();
  clock.now += seconds(59);
  EXPECT_FALSE(stream.IsForgotten(clock.now, seconds(60)));
  clock.now += seconds(1);
  EXPECT_TRUE(stream.IsForgotten(clock.now, seconds(60)));
}

TEST(EventStreams, KeepsByNameUntilForgotten) {
  TurnedClock clock;
  Peer peer;
  EventStreams streams;
  const auto stream = std::make_shared<EventStream>(peer.MakeReply(), &clock, "s");
  EXPECT_TRUE(streams.Keep(stream));
  EXPECT_EQ(streams.Find("s"), stream);
  EXPECT_EQ(streams.Find("t"), nullptr);
  stream->Finish();
  streams.Tick(clock.now, seconds(10), seconds(60));
  EXPECT_EQ(streams.Find("s"), stream);
  streams.Tick(clock.now + seconds(60), seconds(10), seconds(60));
  EXPECT_EQ(streams.Find("s"), nullptr);
}

}  // namespace
}  // namespace tessera::server
