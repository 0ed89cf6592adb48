// SPDX-License-Identifier: Apache-2.0
//
// FakeService: an HttpService on a loopback port with a fake language model under a real engine,
// and calls to it. For tests of server/.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/client.h"
#include "net/sse.h"
#include "server/service.h"
#include "support/fake_model.h"
#include "support/fake_session.h"

namespace tessera::testing {

/// Newline: the last byte of chat prompts, and of those that tests send.
inline constexpr int32_t kMark = 10;

/// The JSON object that `text` is.
inline json::Object Parsed(std::string_view text) {
  return json::Parse(text, {}, "body").value().as_object();
}

struct FakeService {
  explicit FakeService(FakeSessionOptions session, server::ApiOptions api = {},
                       engine::EngineOptions options = {},
                       server::ServedModel model = FakeServedModel()) {
    auto engine = engine::Engine::Start(std::make_unique<FakeSession>(std::move(session)), options,
                                        Clock::Real());
    auto started = server::HttpService::Start(std::move(model), std::move(*engine),
                                              {.api = std::move(api), .http = {}}, Clock::Real());
    if (!started.has_value()) ADD_FAILURE() << started.error().ToString();
    service = std::move(*started);
  }
  static FakeSessionOptions Says(std::string text) {
    FakeSessionOptions options;
    options.next = Recite(std::move(text), kMark, kImEnd);
    return options;
  }
  /// Says `text` as its turn of a chat, with room for a prompt of tools.
  static FakeSessionOptions Answers(const std::string& text) {
    FakeSessionOptions options;
    options.shape.max_seq_len = 2048;
    options.shape.page_count = 256;
    options.next = Recite("assistant\n" + text, kImStart, kImEnd);
    return options;
  }

  net::Response Call(std::string method, std::string target, std::string body = {},
                     net::Headers headers = {}) {
    net::HttpClient client({.port = service->port()});
    if (!body.empty() && !headers.Has("content-type"))
      headers.Set("Content-Type", "application/json");
    auto response =
        client.Call({std::move(method), std::move(target), std::move(headers), std::move(body)});
    if (!response.has_value()) {
      ADD_FAILURE() << response.error().ToString();
      return {};
    }
    return *std::move(response);
  }
  json::Object Post(std::string target, std::string body, int status = 200) {
    const net::Response response = Call("POST", std::move(target), std::move(body));
    EXPECT_EQ(response.status, status) << response.body;
    return Parsed(response.body);
  }
  std::vector<net::SseEvent> Events(std::string target, std::string body) {
    std::vector<net::SseEvent> events;
    const net::Response response = Call("POST", std::move(target), std::move(body));
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_THAT(std::string(response.headers.Find("content-type").value_or("")),
                ::testing::HasSubstr("text/event-stream"));
    net::SseParser parser([&events](net::SseEvent event) { events.push_back(std::move(event)); });
    EXPECT_TRUE(parser.Feed(response.body).ok());
    return events;
  }
  /// Data of every event.
  std::vector<std::string> Stream(std::string target, std::string body) {
    std::vector<std::string> data;
    for (net::SseEvent& event : Events(std::move(target), std::move(body)))
      data.push_back(std::move(event.data));
    return data;
  }
  std::map<std::string, double> Scrape() {
    std::map<std::string, double> values;
    const std::string page = Call("GET", "/metrics").body;
    for (size_t at = 0; at < page.size();) {
      const std::string line = page.substr(at, page.find('\n', at) - at);
      at += line.size() + 1;
      if (line.starts_with("#") || line.find("_bucket") != std::string::npos) continue;
      values[line.substr(0, line.find_first_of("{ "))] += std::stod(line.substr(line.rfind(' ')));
    }
    return values;
  }
  std::unique_ptr<server::HttpService> service;
};

}  // namespace tessera::testing
