// SPDX-License-Identifier: Apache-2.0
//
// Streams that outlive their connection, and progress while a prompt is computed.
#include "server/resume.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "server/limits.h"
#include "support/brake.h"
#include "support/fake_service.h"

namespace tessera::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Brake;
using testing::FakeSessionOptions;
using Server = testing::FakeService;
using ::testing::HasSubstr;

constexpr const char* kPath = "/v1/completions";

std::string Body(std::string_view options, std::string_view members = {}) {
  return fmt::format(
      R"({{"model":"org/fake","prompt":"say\n","temperature":0,"max_tokens":50,"stream":true,)"
      R"("stream_options":{{{}}}{}{}}})",
      options, members.empty() ? "" : ",", members);
}
const std::string kResumable = "\"resumable\":true";

std::vector<net::SseEvent> Events(std::string_view bytes) {
  std::vector<net::SseEvent> events;
  net::SseParser parser([&events](net::SseEvent event) { events.push_back(std::move(event)); });
  EXPECT_TRUE(parser.Feed(bytes).ok());
  return events;
}
std::string IdOf(const net::SseEvent& event) {
  return event.id.substr(0, event.id.find(':'));
}
std::vector<std::string> DataFrom(const std::vector<net::SseEvent>& events, size_t first) {
  std::vector<std::string> data;
  for (size_t i = first; i < events.size(); ++i) data.push_back(events[i].data);
  return data;
}

TEST(Resume, EventsAreNumberedOnlyWhereAskedFor) {
  Server server(Server::Says("hello"));
  const auto numbered = Events(server.Call("POST", kPath, Body(kResumable)).body);
  for (size_t i = 0; i < numbered.size(); ++i)
    EXPECT_EQ(numbered[i].id, fmt::format("{}:{}", IdOf(numbered[0]), i + 1));
  EXPECT_THAT(numbered[0].data, HasSubstr(IdOf(numbered[0])));
  for (const net::SseEvent& event : Events(server.Call("POST", kPath, Body("")).body))
    EXPECT_EQ(event.id, "");
}

TEST(Resume, ACompleteAnswerIsGoneOnWithFromAnyEvent) {
  Server server(Server::Says("hello"));
  const auto whole = Events(server.Call("POST", kPath, Body(kResumable)).body);
  const std::string target = "/v1/requests/" + IdOf(whole[0]) + "/events";
  EXPECT_EQ(DataFrom(Events(server.Call("GET", target).body), 0), DataFrom(whole, 0));
  for (size_t last = 1; last <= whole.size(); ++last)
    for (const std::string& id : {std::to_string(last), whole[last - 1].id}) {
      const net::Response rest = server.Call("GET", target, "", {{"Last-Event-ID", id}});
      EXPECT_EQ(rest.status, 200);
      EXPECT_EQ(DataFrom(Events(rest.body), 0), DataFrom(whole, last)) << id;
    }
  EXPECT_EQ(server.Call("HEAD", target).status, 405) << "it would take the events from a reader";
  const net::Response again =
      server.Call("POST", kPath, Body(kResumable), {{"Last-Event-ID", whole[2].id}});
  EXPECT_EQ(DataFrom(Events(again.body), 0), DataFrom(whole, 3)) << "as clients that repeat";
}

TEST(Resume, ABrokenStreamGoesOnWithoutLossOrRepetition) {
  FakeSessionOptions options = Server::Says(std::string(40, 'x') + "end");
  options.on_step = [](int64_t) {
    std::this_thread::sleep_for(milliseconds(2));  // The pace of a model.
    return Status();
  };
  Server server(options);
  const json::Object plain = server.Post(
      kPath, R"({"model":"org/fake","prompt":"say\n","temperature":0,"max_tokens":50})");
  net::HttpClient client({.port = server.service->port()});
  std::string first;
  (void)client.Stream({"POST", kPath, {{"Content-Type", "application/json"}}, Body(kResumable)},
                      nullptr, [&](std::string_view bytes) {
                        first += bytes;
                        return Events(first).size() < 5;  // Then the connection is closed.
                      });
  const auto seen = Events(first);
  ASSERT_GE(seen.size(), 5u);
  const net::Response rest = server.Call("GET", "/v1/requests/" + IdOf(seen[0]) + "/events", "",
                                         {{"Last-Event-ID", seen.back().id}});
  EXPECT_EQ(rest.status, 200);
  auto all = seen;
  for (net::SseEvent& event : Events(rest.body)) all.push_back(std::move(event));
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].id, fmt::format("{}:{}", IdOf(all[0]), i + 1));
    if (all[i].data == "[DONE]") continue;
    text += std::string_view(
        json::Parse(all[i].data, {}, "event")->at("choices").at(0).at("text").as_string());
  }
  EXPECT_EQ(all.back().data, "[DONE]");
  EXPECT_EQ(text, std::string_view(plain.at("choices").at(0).at("text").as_string()));
}

TEST(Resume, WhoStaysAwayEndsItsGeneration) {
  FakeSessionOptions options;
  options.shape.max_seq_len = 100'000;
  options.shape.page_count = 10'000;
  options.next = [](std::span<const int32_t>) { return 'x'; };
  options.on_step = [](int64_t) {
    std::this_thread::sleep_for(milliseconds(1));
    return Status();
  };
  ApiOptions api;
  api.ping_interval = milliseconds(50);  // The clock ticks at a tenth of it.
  api.resume_grace = milliseconds(100);
  Server server(options, api);
  net::HttpClient client({.port = server.service->port()});
  std::string body = Body(kResumable);
  body.replace(body.find(":50,"), 4, ":50000,");
  std::string first;
  (void)client.Stream({"POST", kPath, {{"Content-Type", "application/json"}}, body}, nullptr,
                      [&](std::string_view bytes) {
                        first += bytes;
                        return Events(first).empty();
                      });
  const auto deadline = Clock::Real().Now() + seconds(20);
  while (server.service->engine().stats().finished_cancelled == 0 && Clock::Real().Now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(server.service->engine().stats().finished_cancelled, 1);
  EXPECT_EQ(server.service->engine().stats().kv_pages_used, 0);
  const std::string target = "/v1/requests/" + IdOf(Events(first)[0]) + "/events";
  while (server.Call("GET", target).status != 404 && Clock::Real().Now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(server.Call("GET", target).status, 404);
}

TEST(Resume, WhatCannotBeGoneOnWithSaysWhy) {
  Server server(Server::Says("hello"));
  const auto whole = Events(server.Call("POST", kPath, Body(kResumable)).body);
  const std::string target = "/v1/requests/" + IdOf(whole[0]) + "/events";
  const auto status = [&](const std::string& path, const std::string& last) {
    return server.Call("GET", path, "", {{"Last-Event-ID", last}}).status;
  };
  EXPECT_EQ(status(target, std::to_string(whole.size() + 1)), 400);
  EXPECT_EQ(status(target, "x"), 400);
  EXPECT_EQ(status(target, "-1"), 400);
  EXPECT_EQ(status("/v1/requests/cmpl-none/events", "1"), 404);
  for (const char* last : {"cmpl-none:1", "x", ":"})
    EXPECT_GE(server.Call("POST", kPath, Body(""), {{"Last-Event-ID", last}}).status, 400) << last;
}

TEST(Resume, StreamsAreKeptUpToTheLimit) {
  Server server(Server::Says("x"));
  for (size_t i = 0; i < kResumeStreamsMax; ++i)
    ASSERT_EQ(server.Call("POST", kPath, Body(kResumable)).status, 200) << i;
  const net::Response refused = server.Call("POST", kPath, Body(kResumable));
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("resumable"));
  EXPECT_EQ(server.Call("POST", kPath, Body("")).status, 200);
}

TEST(Resume, ARefusedRequestLeavesNoStream) {
  Brake brake;
  Server server(brake.Options(), {}, {.max_running = 1, .queue_length = 2});
  std::thread running([&] { server.Call("POST", kPath, Body("", "\"ignore_eos\":true")); });
  brake.AwaitStep();
  for (size_t i = 0; i <= kResumeStreamsMax; ++i)
    EXPECT_THAT(server.Call("POST", kPath, Body(kResumable, "\"n\":2")).body, HasSubstr("queue"));
  brake.Release();
  running.join();
}

TEST(Resume, AFailureBeforeTheFirstEventIsRepeated) {
  FakeSessionOptions options;
  options.on_step = [](int64_t step) { return step == 1 ? Internal("no luck") : Status(); };
  Server server(options);
  EXPECT_EQ(server.Call("POST", kPath, Body(kResumable)).status, 500);
}

TEST(Progress, ChunksTellHowFarThePromptIs) {
  Server server(Server::Says("hello"));
  const std::string prompt(150, 'p');
  const std::string body = fmt::format(
      R"({{"model":"org/fake","prompt":"{}","max_tokens":2,"stream":true,"stream_options":)"
      R"({{"include_progress":true,"include_usage":true}}}})",
      prompt);
  std::vector<int64_t> processed;
  bool has_text = false;
  for (const std::string& event : server.Stream(kPath, body)) {
    if (event == "[DONE]") continue;
    const json::Object chunk = json::Parse(event, {}, "event")->as_object();
    const json::Value* progress = chunk.if_contains("prompt_progress");
    if (progress == nullptr) {
      has_text = true;
      continue;
    }
    EXPECT_FALSE(has_text) << "progress comes first";
    EXPECT_TRUE(chunk.at("choices").as_array().empty());
    EXPECT_EQ(progress->at("total").as_int64(), 150);
    EXPECT_EQ(progress->at("cache").as_int64(), 0);
    processed.push_back(progress->at("processed").as_int64());
  }
  EXPECT_EQ(processed, (std::vector<int64_t>{64, 128, 150}));
  for (const char* bad : {R"("include_progress":1)", R"("resumable":"x")"})
    EXPECT_EQ(server.Call("POST", kPath, Body(bad)).status, 400);
}

}  // namespace
}  // namespace tessera::server
