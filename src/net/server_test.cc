// SPDX-License-Identifier: Apache-2.0
//
// The server over loopback sockets: what memory cannot show (threads, TCP, TLS, many connections).
#include "net/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "net/client.h"
#include "net/router.h"
#include "net/sse.h"

namespace tessera::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
// Generous: reached only when something is broken.
constexpr auto kPatience = seconds(20);

/// A raw socket to the server.
class Peer {
 public:
  explicit Peer(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Peer() { Close(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Reset() {
    const linger hard{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    Close();
  }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  /// Until `stop` shows up, the end of input, or patience ends (a failure).
  std::string Receive(std::string_view stop = {}) {
    std::string all;
    char buffer[65536];
    while (stop.empty() || !all.contains(stop)) {
      pollfd waiting{fd_, POLLIN, 0};
      if (poll(&waiting, 1, static_cast<int>(milliseconds(kPatience).count())) != 1) {
        ADD_FAILURE() << "nothing more comes after: " << all;
        break;
      }
      const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
      if (got <= 0) break;
      all.append(buffer, static_cast<size_t>(got));
    }
    return all;
  }
  std::string Ask(std::string_view bytes, std::string_view stop = {}) {
    Send(bytes);
    return Receive(stop);
  }

 private:
  int fd_;
};

Router MakeRouter() {
  Router router;
  const auto ok = [](const Request&, const ResponseWriter& writer) {
    (void)writer.Send(Response::Text(200, "ok"));
  };
  router.Add("GET", "/a", ok);
  router.Add("POST", "/echo", [](Request request, const ResponseWriter& writer) {
    (void)writer.Send(Response::Text(200, std::move(request.body)));
  });
  return router;
}

std::unique_ptr<Server> Serve(Handler handler, ServerOptions options = {}) {
  auto server = Server::Start(std::move(options), std::move(handler));
  EXPECT_TRUE(server.has_value()) << server.error().ToString();
  return std::move(*server);
}
std::unique_ptr<Server> Serve(ServerOptions options = {}) {
  return Serve(MakeRouter().AsHandler(), std::move(options));
}

/// Polls a counter that another thread moves.
template <class Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Writers handed from the server's threads to the test.
class Mailbox {
 public:
  Handler handler() {
    return [this](const Request&, ResponseWriter writer) {
      const std::lock_guard lock(mutex_);
      writers_.push_back(std::move(writer));
      changed_.notify_all();
    };
  }
  ResponseWriter Take() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return !writers_.empty(); }));
    ResponseWriter writer = std::move(writers_.front());
    writers_.erase(writers_.begin());
    return writer;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ResponseWriter> writers_;
};

TEST(Server, ChoosesAPortAndNamesIt) {
  const auto server = Serve();
  EXPECT_NE(server->port(), 0);
  EXPECT_EQ(server->address(), fmt::format("127.0.0.1:{}", server->port()));
}

TEST(Server, TakesTheBracketsOfAnIpv6Address) {
  for (const char* host : {"::1", "[::1]"}) {
    const auto server = Server::Start({.host = host}, MakeRouter().AsHandler());
    ASSERT_TRUE(server.has_value()) << StatusOf(server).ToString();
    EXPECT_EQ((*server)->address(), fmt::format("[::1]:{}", (*server)->port()));
  }
  for (const char* host : {"[::1", "::1]", "[]", "[127.0.0.1]"})
    EXPECT_FALSE(Server::Start({.host = host}, MakeRouter().AsHandler()).has_value()) << host;
}

TEST(Server, StartFailsWithAReason) {
  const auto server = Serve();
  EXPECT_EQ(Server::Start({.port = server->port()}, MakeRouter().AsHandler()).error().code(),
            Code::kAlreadyExists);
  EXPECT_EQ(Server::Start({.host = "999.1.1.1"}, MakeRouter().AsHandler()).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Server::Start({.tls = TlsFiles{"/nope.pem", "/nope.key"}}, MakeRouter().AsHandler())
                .error()
                .code(),
            Code::kInvalidArgument);
}

TEST(Server, RefusesBadFramingAndStaysHealthy) {
  const auto server = Serve();
  for (const char* headers :
       {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 0, 40\r\n",
        "Content-Length : 0\r\n", "X-A: b\r\n Content-Length: 0\r\n", "garbage\r\n"}) {
    Peer peer(server->port());
    const std::string reply =
        peer.Ask(fmt::format("POST /echo HTTP/1.1\r\nHost: x\r\n{}\r\n0\r\n\r\n{}", headers, kGet));
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400"));
    EXPECT_EQ(reply.find("HTTP/1.1", 1), std::string::npos) << "one answer, then the end";
  }
  for (const size_t size : {300'000, 1'000'000}) {
    Peer peer(server->port());
    EXPECT_THAT(peer.Ask("GET /" + std::string(size, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n"),
                StartsWith("HTTP/1.1 414"));
  }
  EXPECT_THAT(Peer(server->port()).Ask(kGet, "ok"), StartsWith("HTTP/1.1 200"));
}

TEST(Server, LargeBodiesGoThroughAndTooLargeOnesGetAnAnswer) {
  const auto server = Serve({.limits = {.body_bytes = 8u << 20}});
  HttpClient client({.port = server->port()});
  const std::string body(8u << 20, 'b');
  auto reply = client.Call({.method = "POST", .target = "/echo", .body = body});
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  EXPECT_TRUE(reply->body == body);
  reply = client.Call({.method = "POST", .target = "/echo", .body = body + "b"});
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  EXPECT_EQ(reply->status, 413);
}

TEST(Server, DisconnectReachesAHandlerThatAnswersLater) {
  Mailbox mailbox;
  const auto server = Serve(mailbox.handler());
  for (const bool is_reset : {false, true}) {
    Peer peer(server->port());
    peer.Send(kGet);
    const ResponseWriter writer = mailbox.Take();
    std::promise<void> gone;
    writer.OnDisconnect([&] { gone.set_value(); });
    is_reset ? peer.Reset() : peer.Close();
    EXPECT_EQ(gone.get_future().wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(writer.Send(Response::Text(200, "x")).code(), Code::kCancelled);
  }
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open == 0; }));
  EXPECT_EQ(server->stats().disconnects, 2u);
}

TEST(Server, StreamsFromAnotherThread) {
  Mailbox mailbox;
  const auto server = Serve(mailbox.handler());
  constexpr int kEvents = 2000;
  std::thread producer([&] {
    const ResponseWriter writer = mailbox.Take();
    EXPECT_TRUE(writer.StartStream(200, {{"Content-Type", "text/event-stream"}}).ok());
    for (int i = 0; i < kEvents; ++i)
      EXPECT_TRUE(writer.Write(EncodeSseData(std::to_string(i))).ok());
    EXPECT_TRUE(writer.Finish().ok());
  });
  HttpClient client({.port = server->port()});
  int next = 0;
  SseParser parser([&](const SseEvent& event) { EXPECT_EQ(event.data, std::to_string(next++)); });
  const auto reply =
      client.Stream({}, nullptr, [&](std::string_view bytes) { return parser.Feed(bytes).ok(); });
  producer.join();
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  EXPECT_EQ(next, kEvents);
}

TEST(Server, SlowReaderIsCut) {
  Mailbox mailbox;
  const auto server = Serve(mailbox.handler(), {.limits = {.unsent_bytes = 1u << 20}});
  Peer peer(server->port());
  peer.Send(kGet);
  const ResponseWriter writer = mailbox.Take();
  std::atomic<int> calls = 0;
  writer.OnDisconnect([&] { ++calls; });
  EXPECT_TRUE(writer.StartStream(200, {}).ok());
  const std::string piece(64u << 10, 'x');
  Status status;
  for (int i = 0; i < 10'000 && status.ok(); ++i) status = writer.Write(piece);
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_TRUE(Eventually([&] { return calls == 1; }));
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open == 0; }));
}

TEST(Server, WaitForRoomPacesAProducer) {
  Mailbox mailbox;
  const auto server = Serve(mailbox.handler(), {.limits = {.unsent_bytes = 256u << 10}});
  constexpr size_t kPieces = 400, kPieceBytes = 64u << 10;
  std::thread producer([&] {
    const ResponseWriter writer = mailbox.Take();
    EXPECT_TRUE(writer.StartStream(200, {}).ok());
    for (size_t i = 0; i < kPieces; ++i) {
      EXPECT_TRUE(writer.WaitForRoom(kPatience).ok());
      EXPECT_TRUE(writer.Write(std::string(kPieceBytes, 'x')).ok());
    }
    EXPECT_TRUE(writer.Finish().ok());
  });
  const auto reply = HttpClient({.port = server->port()}).Call({});
  producer.join();
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  EXPECT_EQ(reply->body.size(), kPieces * kPieceBytes);
}

TEST(Server, ThousandShortConnections) {
  const auto server = Serve();
  for (int i = 0; i < 1000; ++i) {
    Peer peer(server->port());
    EXPECT_THAT(peer.Ask("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                HasSubstr("\r\n\r\nok"));
  }
  EXPECT_EQ(server->stats().requests, 1000u);
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open == 0; }));
}

TEST(Server, SlowConnectionsDoNotHinderOthersAndAreClosed) {
  const auto server = Serve({.limits = {.header_timeout = milliseconds(500)}});
  std::vector<std::unique_ptr<Peer>> slow;
  for (int i = 0; i < 64; ++i) {
    slow.push_back(std::make_unique<Peer>(server->port()));
    slow.back()->Send("GET /a HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  }
  EXPECT_THAT(Peer(server->port()).Ask(kGet, "ok"), StartsWith("HTTP/1.1 200"));
  for (const auto& peer : slow) EXPECT_THAT(peer->Receive(), StartsWith("HTTP/1.1 408"));
}

TEST(Server, ConnectionLimitAdmitsNAndRefusesNPlusOne) {
  const auto server = Serve({.limits = {.connections = 3}});
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<Peer>(server->port()));
    EXPECT_THAT(peers.back()->Ask(kGet, "ok"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_THAT(Peer(server->port()).Ask(kGet), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(server->stats().connections_refused, 1u);
  peers.pop_back();
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open <= 2; }));
  EXPECT_THAT(Peer(server->port()).Ask(kGet, "ok"), StartsWith("HTTP/1.1 200"));
}

TEST(Server, QueueLimitRefusesWhatNoWorkerCanTake) {
  std::latch entered(1), leave(1);
  std::atomic<int> calls = 0;
  const auto server = Serve(
      [&](const Request&, const ResponseWriter& writer) {
        if (calls++ == 0) {
          entered.count_down();
          leave.wait();
        }
        (void)writer.Send(Response::Text(200, "ok"));
      },
      {.worker_threads = 1, .limits = {.queued_requests = 1}});
  Peer running(server->port()), queued(server->port()), refused(server->port());
  running.Send(kGet);
  entered.wait();
  queued.Send(kGet);
  EXPECT_TRUE(Eventually([&] { return server->stats().requests_open == 2; }));
  EXPECT_THAT(refused.Ask(kGet, "overloaded"), StartsWith("HTTP/1.1 503"));
  leave.count_down();
  EXPECT_THAT(running.Receive("ok"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(queued.Receive("ok"), StartsWith("HTTP/1.1 200"));
}

TEST(Server, HandlerThatThrowsGivesA500) {
  const auto server =
      Serve([](const Request&, const ResponseWriter&) { (void)std::vector<int>().at(1); });
  EXPECT_THAT(Peer(server->port()).Ask(kGet, "internal_error"), StartsWith("HTTP/1.1 500"));
}

TEST(Server, DrainFinishesWhatHasBegunAndRefusesTheRest) {
  Mailbox mailbox;
  const auto server = Serve(mailbox.handler());
  Peer idle(server->port()), busy(server->port());
  busy.Send(kGet);
  const ResponseWriter writer = mailbox.Take();
  EXPECT_TRUE(writer.StartStream(200, {}).ok());
  auto drained = std::async(std::launch::async, [&] { return server->Drain(seconds(20)); });
  EXPECT_EQ(idle.Receive(), "") << "closed";
  EXPECT_TRUE(writer.Write("tail").ok());
  EXPECT_TRUE(writer.Finish().ok());
  EXPECT_THAT(busy.Receive(), HasSubstr("tail"));
  EXPECT_TRUE(drained.get().ok());
  EXPECT_TRUE(server->Drain(seconds(0)).ok()) << "a second call has nothing to do";
}

TEST(Server, DrainCutsAtItsDeadline) {
  Mailbox mailbox;
  const auto server = Serve(mailbox.handler());
  Peer peer(server->port());
  peer.Send(kGet);
  const ResponseWriter writer = mailbox.Take();
  std::atomic<int> calls = 0;
  writer.OnDisconnect([&] { ++calls; });
  EXPECT_EQ(server->Drain(milliseconds(50)).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(peer.Receive(), "");
}

TEST(Server, DestructorCutsOpenRequests) {
  Mailbox mailbox;
  auto server = Serve(mailbox.handler());
  Peer peer(server->port());
  peer.Send(kGet);
  const ResponseWriter writer = mailbox.Take();
  server.reset();
  EXPECT_TRUE(writer.disconnected());
  EXPECT_EQ(writer.Write("x").code(), Code::kCancelled);
}

TEST(Server, ManyThreadsAndAbruptPeersLeaveNothingBehind) {
  const auto server = Serve();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        Peer peer(server->port());
        peer.Send(kGet.substr(0, static_cast<size_t>(i + t) % kGet.size() + 1));
        if (i % 3 == 0) peer.Reset();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Eventually([&] { return server->stats().connections_open == 0; }));
  EXPECT_EQ(server->stats().requests_open, 0u);
}

TEST(Server, LoopbackOnlyRefusesWhatOthersCanReach) {
  const auto answer = [](const Request&, const ResponseWriter& writer) {
    (void)writer.Send(Response::Text(200, ""));
  };
  for (const char* host : {"127.0.0.1", "127.1.2.3", "localhost", "::1", "::ffff:127.0.0.1"}) {
    const auto server = Server::Start({.host = host, .loopback_only = true}, answer);
    EXPECT_TRUE(server.has_value() || server.error().code() == Code::kInvalidArgument)
        << host << ": " << server.error().ToString();  // Without IPv6 it is no address.
  }
  for (const char* host : {"0.0.0.0", "::", "::ffff:0.0.0.0"}) {
    const auto server = Server::Start({.host = host, .loopback_only = true}, answer);
    ASSERT_FALSE(server.has_value()) << host;
    EXPECT_EQ(server.error().code(), Code::kFailedPrecondition) << server.error().ToString();
  }
}

}  // namespace
}  // namespace tessera::net
