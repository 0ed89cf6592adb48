// SPDX-License-Identifier: Apache-2.0
#include "net/connection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "net/connection_harness.h"

namespace tessera::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

void Echo(const Request& request, const ResponseWriter& writer) {
  (void)writer.Send(Response::Text(200, request.method + request.path + request.body));
}

/// Keeps the writer of the last request for the test to use.
struct Keeper {
  std::optional<ResponseWriter> writer;
  Handler handler() {
    return [this](const Request&, ResponseWriter given) { writer.emplace(std::move(given)); };
  }
};

TEST(Connection, AnswersAndKeepsAlive) {
  ConnectionHarness harness(Echo);
  for (int i = 0; i < 3; ++i) {
    const std::string reply = harness.Talk(kGet);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(reply, HasSubstr("Content-Length: 5\r\n"));
    EXPECT_THAT(reply, HasSubstr("\r\nDate: "));
    EXPECT_THAT(reply, Not(HasSubstr("Connection:")));
    EXPECT_TRUE(reply.ends_with("\r\n\r\nGET/a"));
  }
  EXPECT_EQ(harness.counters().requests, 3u);
  EXPECT_EQ(harness.counters().requests_open, 0u);
}

TEST(Connection, ClosesWhenAsked) {
  ConnectionHarness harness(Echo);
  const std::string reply = harness.Talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n");
  EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(harness.link().is_ended());
  EXPECT_FALSE(harness.link().is_closed()) << "lingers for the peer";
  harness.link().CloseSend();
  harness.link().Run();
  EXPECT_TRUE(harness.link().is_closed());
}

TEST(Connection, PipelinedRequestsAreAnsweredInOrder) {
  std::vector<ResponseWriter> writers;
  ConnectionHarness harness(
      [&](const Request&, ResponseWriter writer) { writers.push_back(std::move(writer)); });
  EXPECT_THAT(harness.Talk(std::string(kGet) + std::string(kGet)), IsEmpty());
  ASSERT_EQ(writers.size(), 1u) << "the second waits for the first";
  EXPECT_TRUE(writers[0].Send(Response::Text(200, "one")).ok());
  EXPECT_THAT(harness.Receive(), HasSubstr("one"));
  ASSERT_EQ(writers.size(), 2u);
  EXPECT_TRUE(writers[1].Send(Response::Text(200, "two")).ok());
  EXPECT_THAT(harness.Receive(), HasSubstr("two"));
}

TEST(Connection, ManyPipelinedRequestsInOneWrite) {
  ConnectionHarness harness(Echo);
  std::string requests;
  for (int i = 0; i < 5000; ++i) requests += fmt::format("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", i);
  const std::string reply = harness.Talk(requests);
  EXPECT_EQ(harness.counters().requests, 5000u);
  EXPECT_TRUE(reply.ends_with("GET/4999"));
}

TEST(Connection, StreamsInChunks) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  EXPECT_TRUE(keeper.writer->StartStream(200, {{"Content-Type", "text/event-stream"}}).ok());
  EXPECT_TRUE(keeper.writer->Write("hello").ok());
  const std::string head = harness.Receive();
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n5\r\nhello\r\n")) << head;
  EXPECT_TRUE(keeper.writer->Write("").ok()) << "an empty chunk would end the stream";
  EXPECT_THAT(harness.Receive(), IsEmpty());
  EXPECT_TRUE(keeper.writer->Write(std::string(17, 'x')).ok());
  EXPECT_TRUE(keeper.writer->Finish().ok());
  EXPECT_EQ(harness.Receive(), "11\r\n" + std::string(17, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(keeper.writer->Write("late").code(), Code::kFailedPrecondition);
  EXPECT_THAT(harness.Talk(kGet), IsEmpty()) << "the connection lives on";
  EXPECT_EQ(harness.counters().requests_open, 1u);
}

TEST(Connection, Http10StreamsEndWithTheConnection) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(keeper.writer->StartStream(200, {}).ok());
  EXPECT_TRUE(keeper.writer->Write("ab").ok());
  EXPECT_TRUE(keeper.writer->Finish().ok());
  const std::string reply = harness.Receive();
  EXPECT_THAT(reply, Not(HasSubstr("chunked")));
  EXPECT_TRUE(reply.ends_with("\r\n\r\nab"));
  EXPECT_TRUE(harness.link().is_ended());
}

TEST(Connection, HeadDropsBodies) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(keeper.writer->StartStream(200, {}).ok());
  EXPECT_TRUE(keeper.writer->Write("ab").ok());
  EXPECT_TRUE(keeper.writer->Finish().ok());
  EXPECT_TRUE(harness.Receive().ends_with("chunked\r\n\r\n"));
}

TEST(Connection, CallsOutOfOrderAreRefused) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  EXPECT_EQ(keeper.writer->Write("x").code(), Code::kFailedPrecondition);
  EXPECT_EQ(keeper.writer->Finish().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(keeper.writer->Send(Response::Text(200, "a")).ok());
  EXPECT_EQ(keeper.writer->Send(Response::Text(200, "b")).code(), Code::kFailedPrecondition);
  EXPECT_TRUE(harness.Receive().ends_with("\r\n\r\na"));
}

TEST(Connection, HeadersThatWouldSplitTheAnswerAreRefused) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  EXPECT_EQ(keeper.writer->Send({200, {{"X", "a\r\nSet-Cookie: b"}}, ""}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(keeper.writer->StartStream(200, {{"Content-Length", "3"}}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(keeper.writer->Send({99}).code(), Code::kInvalidArgument);
  EXPECT_EQ(keeper.writer->Send({204, {}, "body"}).code(), Code::kInvalidArgument);
  keeper.writer.reset();
  EXPECT_THAT(harness.Receive(), StartsWith("HTTP/1.1 500"));
}

TEST(Connection, HandlerThatNeverAnswersGivesA500) {
  ConnectionHarness harness([](const Request&, const ResponseWriter&) {});
  EXPECT_THAT(harness.Talk(kGet), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(harness.Talk(kGet), StartsWith("HTTP/1.1 500")) << "and the connection lives on";
}

TEST(Connection, StreamThatIsGivenUpIsCutNotEnded) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  EXPECT_TRUE(keeper.writer->StartStream(200, {}).ok());
  EXPECT_TRUE(keeper.writer->Write("x").ok());
  harness.Receive();
  keeper.writer.reset();
  EXPECT_THAT(harness.Receive(), Not(HasSubstr("0\r\n\r\n")));
  EXPECT_TRUE(harness.link().is_closed());
}

TEST(Connection, DisconnectIsReportedOnceWhileTheRequestIsHandled) {
  for (const bool is_reset : {false, true}) {
    Keeper keeper;
    ConnectionHarness harness(keeper.handler());
    harness.Talk(kGet);
    int calls = 0;
    keeper.writer->OnDisconnect([&] { ++calls; });
    is_reset ? harness.link().Reset() : harness.link().CloseSend();
    harness.link().Run();
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(keeper.writer->disconnected());
    EXPECT_EQ(keeper.writer->Send(Response::Text(200, "x")).code(), Code::kCancelled);
    keeper.writer.reset();
    harness.link().Run();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(harness.counters().open, 0u);
    EXPECT_EQ(harness.counters().disconnects, 1u);
  }
}

TEST(Connection, DisconnectIsReportedInTheMiddleOfAStream) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  EXPECT_TRUE(keeper.writer->StartStream(200, {}).ok());
  int calls = 0;
  keeper.writer->OnDisconnect([&] { ++calls; });
  harness.Receive();
  harness.link().CloseSend();
  harness.link().Run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(keeper.writer->Write("x").code(), Code::kCancelled);
  EXPECT_EQ(keeper.writer->Finish().code(), Code::kCancelled);
}

TEST(Connection, LateRegistrationIsCalledAtOnce) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  harness.link().CloseSend();
  harness.link().Run();
  int calls = 0;
  keeper.writer->OnDisconnect([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(Connection, DisconnectAfterTheAnswerIsNotReported) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  int calls = 0;
  keeper.writer->OnDisconnect([&] { ++calls; });
  EXPECT_TRUE(keeper.writer->Send(Response::Text(200, "x")).ok());
  harness.link().CloseSend();
  EXPECT_TRUE(harness.Receive().ends_with("\r\n\r\nx")) << "a ready answer is still delivered";
  EXPECT_TRUE(harness.link().is_closed());
  EXPECT_EQ(calls, 0);
}

// The callback is dropped with the answer; what it owns may use the writer while it dies.
TEST(Connection, DroppedCallbackMayCallBack) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  bool was_destroyed = false;
  std::shared_ptr<int> owned(new int(0), [&](int* object) {
    delete object;
    was_destroyed = !keeper.writer->disconnected();
  });
  keeper.writer->OnDisconnect([held = std::move(owned)] {});
  EXPECT_TRUE(keeper.writer->Send(Response::Text(200, "x")).ok());
  EXPECT_TRUE(was_destroyed);
}

TEST(Connection, SlowReaderIsCutAtTheLimit) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler(), Limits{.unsent_bytes = 1000});
  harness.Talk(kGet);
  int calls = 0;
  keeper.writer->OnDisconnect([&] { ++calls; });
  harness.link().SetWindow(0);
  EXPECT_TRUE(keeper.writer->StartStream(200, {}).ok());
  const uint64_t head = keeper.writer->unsent_bytes();
  const auto room = static_cast<size_t>(1000 - head);
  constexpr size_t kChunkFrame = 7;  // "3e8\r\n" and the CR LF behind.
  EXPECT_TRUE(keeper.writer->Write(std::string(room - kChunkFrame, 'x')).ok());
  harness.link().Run();
  EXPECT_EQ(keeper.writer->WaitForRoom(milliseconds(1)).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(keeper.writer->Write(std::string(kChunkFrame + 1, 'x')).code(),
            Code::kResourceExhausted);
  harness.link().Run();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(harness.link().is_closed());
  EXPECT_EQ(keeper.writer->WaitForRoom(milliseconds(1)).code(), Code::kCancelled);
}

TEST(Connection, ReaderThatTakesBytesMakesRoom) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler(), Limits{.unsent_bytes = 1000});
  harness.Talk(kGet);
  EXPECT_TRUE(keeper.writer->StartStream(200, {}).ok());
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(keeper.writer->Write(std::string(600, 'x')).ok());
    harness.link().Run();
    EXPECT_EQ(keeper.writer->unsent_bytes(), 0u);
    EXPECT_TRUE(keeper.writer->WaitForRoom(seconds(0)).ok());
  }
}

TEST(Connection, StalledWriteIsCut) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler(), Limits{.write_stall_timeout = seconds(5)});
  harness.Talk(kGet);
  int calls = 0;
  keeper.writer->OnDisconnect([&] { ++calls; });
  EXPECT_TRUE(keeper.writer->StartStream(200, {}).ok());
  harness.Receive();
  harness.link().SetWindow(2);
  EXPECT_TRUE(keeper.writer->Write("abc").ok());
  harness.link().Advance(seconds(4));
  EXPECT_EQ(calls, 0);
  harness.link().Advance(seconds(2));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(harness.link().is_closed());
}

TEST(Connection, SlowHeadersAreCutOffHoweverTheyDrip) {
  ConnectionHarness harness(Echo, Limits{.header_timeout = seconds(20)});
  harness.Talk("GET / HTTP/1.1\r\nHost: x\r\nX: ");
  for (int i = 0; i < 19; ++i) {
    harness.link().Advance(seconds(1));
    EXPECT_THAT(harness.Talk("a"), IsEmpty());
  }
  harness.link().Advance(seconds(2));
  EXPECT_THAT(harness.Receive(), StartsWith("HTTP/1.1 408"));
  EXPECT_TRUE(harness.link().is_ended());
  harness.link().Advance(seconds(60));
  EXPECT_TRUE(harness.link().is_closed()) << "lingering ends too";
}

TEST(Connection, SilentPeersAreClosedWithoutAWord) {
  ConnectionHarness harness(Echo);
  harness.link().Advance(seconds(21));
  EXPECT_TRUE(harness.link().is_closed());
  EXPECT_THAT(harness.Receive(), IsEmpty());
  harness.Connect();
  harness.Talk(kGet);
  harness.link().Advance(seconds(74));
  EXPECT_FALSE(harness.link().is_closed()) << "an idle connection is kept for idle_timeout";
  harness.link().Advance(seconds(2));
  EXPECT_TRUE(harness.link().is_closed());
}

TEST(Connection, SlowBodiesAreCutOffAndSteadyOnesAreNot) {
  const Limits limits{.body_timeout = seconds(10), .body_bytes_per_s = 100};
  ConnectionHarness harness(Echo, limits);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n";
  harness.Talk(head);
  for (int i = 0; i < 25; ++i) {
    harness.link().Advance(seconds(1));
    EXPECT_THAT(harness.Talk(std::string(100, 'x')), IsEmpty()) << i;
  }
  std::string reply;
  for (int i = 0; i < 12; ++i) {
    reply += harness.Talk("x");
    harness.link().Advance(seconds(1));
  }
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 408"));
}

TEST(Connection, HandlingTakesAsLongAsItTakes) {
  Keeper keeper;
  ConnectionHarness harness(keeper.handler());
  harness.Talk(kGet);
  harness.link().Advance(std::chrono::hours(1));
  EXPECT_TRUE(keeper.writer->Send(Response::Text(200, "late")).ok());
  EXPECT_TRUE(harness.Receive().ends_with("late"));
}

TEST(Connection, ExpectationIsMetBeforeTheBody) {
  ConnectionHarness harness(Echo);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
  EXPECT_EQ(harness.Talk(head), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(harness.Talk("abc").ends_with("POST/abc"));
  EXPECT_THAT(harness.Talk(head + "abc"), StartsWith("HTTP/1.1 200")) << "not once it is there";
}

TEST(Connection, LargeBodyIsRefusedBeforeItIsSent) {
  ConnectionHarness harness(Echo, Limits{.body_bytes = 10});
  const std::string reply = harness.Talk(
      "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(harness.Talk(std::string(100000, 'x')), IsEmpty()) << "the rest is dropped";
}

/// Counts what it gets; bodies with an 'X' are refused where it stands.
class Receiver final : public BodyReceiver {
 public:
  struct Seen {
    uint64_t bytes = 0;
    int pieces = 0, alive = 0;
  };
  explicit Receiver(Seen* seen) : seen_(seen) { ++seen_->alive; }
  ~Receiver() override { --seen_->alive; }
  std::optional<HttpError> OnBytes(std::string_view bytes) override {
    seen_->bytes += bytes.size();
    ++seen_->pieces;
    if (bytes.contains('X')) return HttpError{507, "full", "no room"};
    return std::nullopt;
  }
  void OnComplete(Request request, ResponseWriter writer) override {
    EXPECT_EQ(request.body, "");
    (void)writer.Send(Response::Text(200, fmt::format("got {}", seen_->bytes)));
  }

 private:
  Seen* seen_;
};

/// For paths under /up; /up/no is refused by its head.
BodyReceiverHook ReceiveInto(Receiver::Seen* seen) {
  return [seen](const Request& head) -> std::expected<BodyPlan, HttpError> {
    if (head.path == "/up/no") return std::unexpected(HttpError{401, "who", "who are you"});
    if (!head.path.starts_with("/up")) return BodyPlan{};
    return BodyPlan{.receiver = std::make_shared<Receiver>(seen), .bytes_max = 1000};
  };
}

std::string PostOf(std::string_view path, size_t length, std::string_view body) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", path, length,
                     body);
}

TEST(Connection, AReceiverGetsTheBodyInPlaceOfTheHandler) {
  Receiver::Seen seen;
  ConnectionHarness harness(Echo, Limits{.body_bytes = 10, .body_bytes_total = 10},
                            ReceiveInto(&seen));
  EXPECT_THAT(harness.Talk(PostOf("/up", 1000, std::string(400, 'a'))), IsEmpty());
  EXPECT_EQ(seen.bytes, 400u) << "as it comes";
  EXPECT_EQ(harness.counters().body_bytes, 0u) << "it is not kept";
  EXPECT_TRUE(harness.Talk(std::string(600, 'a')).ends_with("got 1000")) << "beyond body_bytes";
  EXPECT_EQ(seen.alive, 0);
  EXPECT_TRUE(harness.Talk(PostOf("/a", 10, "0123456789")).ends_with("POST/a0123456789"));
  EXPECT_TRUE(harness.Talk(PostOf("/up", 0, "")).ends_with("POST/up")) << "no body, no receiver";
  seen = {};
  const std::string chunked = "POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_TRUE(harness.Talk(chunked + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").ends_with("got 5"));
  EXPECT_EQ(harness.counters().requests_open, 0u);
}

TEST(Connection, AReceiverIsGoneWhenItsRequestIs) {
  for (const char* what : {"refuses", "peer leaves", "overload", "too large", "too large chunks"}) {
    SCOPED_TRACE(what);
    Receiver::Seen seen;
    ConnectionHarness harness(Echo, Limits{.body_bytes = 10}, ReceiveInto(&seen));
    std::string reply;
    if (what == std::string_view("refuses")) {
      reply = harness.Talk(PostOf("/up", 900, "abXc"));
      EXPECT_THAT(reply, StartsWith("HTTP/1.1 507"));
      EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
    } else if (what == std::string_view("peer leaves")) {
      harness.Talk(PostOf("/up", 900, "abc"));
      EXPECT_EQ(seen.alive, 1);
      harness.link().CloseSend();
      harness.link().Run();
    } else if (what == std::string_view("overload")) {
      harness.set_overloaded(true);
      EXPECT_THAT(harness.Talk(PostOf("/up", 3, "abc")), StartsWith("HTTP/1.1 503"));
    } else if (what == std::string_view("too large")) {
      EXPECT_THAT(harness.Talk(PostOf("/up", 1001, "")), StartsWith("HTTP/1.1 413"));
      EXPECT_EQ(seen.pieces, 0);
    } else {
      const std::string head = "POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
      reply = harness.Talk(head + "3e9\r\n" + std::string(1001, 'a') + "\r\n0\r\n\r\n");
      EXPECT_THAT(reply, StartsWith("HTTP/1.1 413"));
    }
    EXPECT_EQ(seen.alive, 0);
  }
}

TEST(Connection, AHeadMayBeRefusedBeforeItsBody) {
  Receiver::Seen seen;
  ConnectionHarness harness(Echo, Limits{.body_bytes = 10}, ReceiveInto(&seen));
  EXPECT_THAT(harness.Talk(PostOf("/up/no", 500, "")), StartsWith("HTTP/1.1 401"));
}

TEST(Connection, WithoutAReceiverTheServersLimitHolds) {
  Receiver::Seen seen;
  ConnectionHarness harness(Echo, Limits{.body_bytes = 10}, ReceiveInto(&seen));
  EXPECT_THAT(harness.Talk(PostOf("/a", 11, "")), HasSubstr("larger than 10 bytes"));
}

TEST(Connection, BodiesOfAllConnectionsAreBounded) {
  ConnectionHarness harness(Echo, Limits{.body_bytes_total = 100});
  harness.counters().body_bytes = 60;  // As if other connections held them.
  for (const auto& [length, status] : {std::pair{40, "HTTP/1.1 200"}, {41, "HTTP/1.1 503"}}) {
    EXPECT_THAT(
        harness.Talk(fmt::format("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
                                 length, std::string(length, 'x'))),
        StartsWith(status));
    EXPECT_EQ(harness.counters().body_bytes, 60u) << "returned";
  }
}

TEST(Connection, MalformedInputIsAnsweredOnceAndClosed) {
  ConnectionHarness harness(Echo);
  const std::string reply = harness.Talk(std::string(kGet) + "BAD\r\n\r\n" + std::string(kGet));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(reply, HasSubstr("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(reply, HasSubstr(R"("code":"invalid_request_line")"));
  EXPECT_EQ(harness.counters().requests, 1u);
  EXPECT_TRUE(harness.link().is_ended());
}

TEST(Connection, OverloadIsA503ThatKeepsTheConnection) {
  ConnectionHarness harness(Echo);
  harness.set_overloaded(true);
  const std::string reply = harness.Talk(kGet);
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(reply, HasSubstr("Retry-After"));
  harness.set_overloaded(false);
  EXPECT_THAT(harness.Talk(kGet), StartsWith("HTTP/1.1 200"));
}

TEST(Connection, DrainClosesIdleOnesAndLetsOthersFinish) {
  Keeper keeper;
  ConnectionHarness idle(Echo);
  idle.Talk(kGet);
  idle.StartDrain();
  EXPECT_TRUE(idle.link().is_closed());

  ConnectionHarness busy(keeper.handler());
  busy.Talk(kGet);
  busy.StartDrain();
  EXPECT_FALSE(busy.link().is_closed());
  EXPECT_TRUE(keeper.writer->Send(Response::Text(200, "x")).ok());
  EXPECT_THAT(busy.Receive(), HasSubstr("Connection: close\r\n"));
  busy.link().Advance(seconds(1));
  EXPECT_TRUE(busy.link().is_closed());

  ConnectionHarness half(Echo);
  half.Talk("GET /a HTTP/1.1\r\nHo");
  half.StartDrain();
  EXPECT_THAT(half.Talk("st: x\r\n\r\n"), HasSubstr("GET/a")) << "a begun request is served";
}

TEST(Connection, WriterOutlivesTheConnection) {
  Keeper keeper;
  {
    ConnectionHarness harness(keeper.handler());
    harness.Talk(kGet);
  }
  EXPECT_TRUE(keeper.writer->disconnected());
  EXPECT_EQ(keeper.writer->StartStream(200, {}).code(), Code::kCancelled);
}

// A failure of the n-th read or write, for every n until none is met: nothing leaks, and the
// handler hears of it unless its answer was complete.
TEST(Connection, EveryFailedReadOrWriteEndsCleanly) {
  for (const bool fail_read : {true, false}) {
    bool was_met = true;
    for (uint64_t n = 1; was_met; ++n) {
      ASSERT_LT(n, 1000u);
      int begun = 0, disconnects = 0, finished = 0;
      ConnectionHarness harness([&](const Request&, const ResponseWriter& writer) {
        ++begun;
        writer.OnDisconnect([&] { ++disconnects; });
        if (!writer.StartStream(200, {}).ok() || !writer.Write("data").ok()) return;
        finished += writer.Finish().ok();
      });
      harness.link().SetGrain(7);
      fail_read ? harness.link().FailRead(n) : harness.link().FailWrite(n);
      harness.Talk(std::string(kGet) + std::string(kGet));
      was_met = harness.link().is_closed();
      EXPECT_EQ(begun, finished + disconnects);
      if (was_met) {
        EXPECT_EQ(harness.counters().open, 0u);
        EXPECT_EQ(harness.counters().requests_open, 0u);
        EXPECT_EQ(harness.counters().body_bytes, 0u);
      }
    }
  }
}

TEST(Connection, OneByteAtATimeGivesTheSameAnswers) {
  ConnectionHarness harness(Echo);
  harness.link().SetGrain(1);
  const std::string reply = harness.Talk(
      "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" +
      std::string(kGet));
  EXPECT_THAT(reply, HasSubstr("POST/pab"));
  EXPECT_TRUE(reply.ends_with("GET/a"));
}

}  // namespace
}  // namespace tessera::net
