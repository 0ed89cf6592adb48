// SPDX-License-Identifier: Apache-2.0
#include "net/upstream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "net/memory_transport.h"
#include "net/server.h"
#include "net/upstream_connection.h"

namespace tessera::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Collected final : UpstreamListener {
  void OnHead(Response response) override { head = std::move(response); }
  void OnBody(std::string_view bytes) override { body += bytes; }
  bool HasRoom() override { return has_room; }
  void OnEnd(const UpstreamEnd& ended) override {
    end = ended;
    done.set_value();
  }
  UpstreamEnd Wait() {
    EXPECT_EQ(done.get_future().wait_for(seconds(60)), std::future_status::ready);
    return end;
  }

  Response head;
  std::string body;
  std::atomic<bool> has_room{true};
  UpstreamEnd end;
  std::promise<void> done;
};

std::unique_ptr<UpstreamClient> Client(UpstreamOptions options = {}) {
  return *UpstreamClient::Start(options);
}

std::unique_ptr<Server> Serve(Handler handler, uint16_t port = 0) {
  ServerOptions options;
  options.port = port;
  return *Server::Start(std::move(options), std::move(handler));
}

Handler Echo() {
  return [](const Request& request, const ResponseWriter& writer) {
    (void)writer.Send(
        Response::Text(200, request.method + " " + request.target + " " + request.body));
  };
}

TEST(Upstream, CallsKeepTheirConnection) {
  const auto server = Serve(Echo());
  const auto client = Client();
  for (int i = 0; i < 5; ++i) {
    const auto got = std::make_shared<Collected>();
    client->Send({"127.0.0.1", server->port()}, {.method = "POST", .target = "/a?b", .body = "c"},
                 got);
    EXPECT_TRUE(got->Wait().status.ok());
    EXPECT_EQ(got->head.status, 200);
    EXPECT_EQ(got->body, "POST /a?b c");
  }
  EXPECT_EQ(server->stats().connections_accepted, 1u);
}

TEST(Upstream, ManyCallsAtATime) {
  std::atomic<int> open{0}, most{0};
  ServerOptions options;
  options.worker_threads = 32;
  const auto server =
      *Server::Start(options, [&](const Request& request, const ResponseWriter& writer) {
        const int now = ++open;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(milliseconds(20));
        --open;
        (void)writer.Send(Response::Text(200, request.body));
      });
  const auto client = Client({.loop_threads = 2});
  std::vector<std::shared_ptr<Collected>> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(std::make_shared<Collected>());
    client->Send({"127.0.0.1", server->port()}, {.method = "POST", .body = std::to_string(i)},
                 calls.back());
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(calls[i]->Wait().status.ok());
    EXPECT_EQ(calls[i]->body, std::to_string(i));
  }
  EXPECT_GT(most, 8);
}

TEST(Upstream, AStreamArrivesPieceByPiece) {
  std::promise<void> go;
  const auto server = Serve([&](const Request&, const ResponseWriter& writer) {
    (void)writer.StartStream(200, {{"content-type", "text/plain"}});
    (void)writer.Write("first");
    go.get_future().wait();
    (void)writer.Write("second");
    (void)writer.Finish();
  });
  struct Watcher final : UpstreamListener {
    explicit Watcher(std::promise<void>* on_first) : first(on_first) {}
    void OnHead(Response) override {}
    void OnBody(std::string_view bytes) override {
      body += bytes;
      if (body == "first") first->set_value();
    }
    void OnEnd(const UpstreamEnd& end) override { done.set_value(end.status); }
    std::promise<void>* first;
    std::string body;
    std::promise<Status> done;
  };
  const auto client = Client();
  const auto watcher = std::make_shared<Watcher>(&go);
  client->Send({"127.0.0.1", server->port()}, {}, watcher);
  EXPECT_TRUE(watcher->done.get_future().get().ok());
  EXPECT_EQ(watcher->body, "firstsecond");
}

TEST(Upstream, RefusedConnectionsWereNotSent) {
  uint16_t port = 0;
  { port = Serve(Echo())->port(); }
  const auto client = Client();
  const auto got = std::make_shared<Collected>();
  client->Send({"127.0.0.1", port}, {.method = "POST", .body = "x"}, got);
  const UpstreamEnd end = got->Wait();
  EXPECT_EQ(end.status.code(), Code::kUnavailable);
  EXPECT_FALSE(end.was_sent);
  const auto named = std::make_shared<Collected>();
  client->Send({"localhost", port}, {}, named);
  EXPECT_EQ(named->Wait().status.code(), Code::kInvalidArgument);
}

TEST(Upstream, AKeptConnectionThatWasClosedIsReplaced) {
  auto server = Serve(Echo());
  const uint16_t port = server->port();
  const auto client = Client();
  const auto first = std::make_shared<Collected>();
  client->Send({"127.0.0.1", port}, {}, first);
  EXPECT_TRUE(first->Wait().status.ok());
  server.reset();
  server = Serve(Echo(), port);
  const auto second = std::make_shared<Collected>();
  client->Send({"127.0.0.1", port}, {.method = "POST", .body = "x"}, second);
  EXPECT_TRUE(second->Wait().status.ok()) << second->end.status.ToString();
  EXPECT_EQ(second->body, "POST / x");
}

TEST(Upstream, CancellingTellsTheServer) {
  std::promise<void> begun, gone;
  const auto server = Serve([&](const Request&, const ResponseWriter& writer) {
    auto kept = std::make_shared<ResponseWriter>(writer);
    writer.OnDisconnect([&gone] { gone.set_value(); });
    begun.set_value();
    std::thread([kept] { std::this_thread::sleep_for(milliseconds(500)); }).detach();
  });
  const auto client = Client();
  const auto got = std::make_shared<Collected>();
  const UpstreamCall call = client->Send({"127.0.0.1", server->port()}, {}, got);
  begun.get_future().wait();
  call.Cancel();
  call.Cancel();
  EXPECT_EQ(got->Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(gone.get_future().wait_for(seconds(60)), std::future_status::ready);
}

TEST(Upstream, TheClientsEndEndsItsCalls) {
  const auto writers = std::make_shared<std::vector<ResponseWriter>>();
  std::promise<void> begun;
  const auto server = Serve([&](const Request&, const ResponseWriter& writer) {
    writers->push_back(writer);
    begun.set_value();
  });
  auto client = Client();
  const auto got = std::make_shared<Collected>();
  const UpstreamCall call = client->Send({"127.0.0.1", server->port()}, {}, got);
  begun.get_future().wait();
  client.reset();
  EXPECT_EQ(got->Wait().status.code(), Code::kCancelled);
  call.Cancel();  // Outlives both.
  writers->clear();
}

// ---- one connection, without sockets --------------------------------------------------------

class UpstreamConnectionTest : public ::testing::Test {
 protected:
  void Begin(const std::string& bytes = "GET / HTTP/1.1\r\n\r\n") {
    bytes_ = bytes;
    got = std::make_shared<Collected>();
    connection->Begin(bytes_, false, got, [this](const UpstreamConnection::Outcome& result) {
      outcome = result;
      is_done = true;
    });
    link->Run();
  }

  UpstreamOptions options;
  std::shared_ptr<MemoryLink> link = std::make_shared<MemoryLink>();
  std::shared_ptr<UpstreamConnection> connection =
      std::make_shared<UpstreamConnection>(MakeMemoryTransport(link), options);
  std::shared_ptr<Collected> got;
  UpstreamConnection::Outcome outcome;
  bool is_done = false;
  std::string bytes_;
};

TEST_F(UpstreamConnectionTest, AnswersInAnySplit) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
  for (size_t cut = 0; cut <= answer.size(); ++cut) {
    is_done = false;
    Begin();
    link->Send(answer.substr(0, cut));
    link->Run();
    link->Send(answer.substr(cut));
    link->Run();
    ASSERT_TRUE(is_done) << cut;
    EXPECT_TRUE(outcome.end.status.ok()) << outcome.end.status.ToString();
    EXPECT_TRUE(outcome.is_reusable);
    EXPECT_EQ(got->body, "hello!");
  }
}

TEST_F(UpstreamConnectionTest, TruncationIsNotAnEnd) {
  Begin();
  link->Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal");
  link->CloseSend();
  link->Run();
  ASSERT_TRUE(is_done);
  EXPECT_EQ(outcome.end.status.code(), Code::kDataLoss);
  EXPECT_TRUE(outcome.end.was_sent);
  EXPECT_FALSE(outcome.is_reusable);
}

TEST_F(UpstreamConnectionTest, RefusalsBeforeTheBodyWasSentAreHeard) {
  link->SetWindow(5);
  Begin("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n" + std::string(100, 'x'));
  link->Send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
  link->Run();
  ASSERT_TRUE(is_done);
  EXPECT_EQ(got->head.status, 413);
  EXPECT_EQ(got->body, "no");
  EXPECT_FALSE(outcome.is_reusable) << "the rest of the request is still to be sent";
}

TEST_F(UpstreamConnectionTest, WithoutRoomNothingIsRead) {
  Begin();
  got->has_room = false;
  link->Send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
  link->Run();
  link->Send("def");
  link->Advance(milliseconds(100));
  EXPECT_EQ(got->body, "abc");
  got->has_room = true;
  link->Advance(milliseconds(100));
  EXPECT_TRUE(is_done);
  EXPECT_EQ(got->body, "abcdef");
}

TEST_F(UpstreamConnectionTest, SilenceEnds) {
  Begin();
  link->Advance(options.idle_timeout + seconds(1));
  ASSERT_TRUE(is_done);
  EXPECT_EQ(outcome.end.status.code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace tessera::net
