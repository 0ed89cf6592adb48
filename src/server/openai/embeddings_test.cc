// SPDX-License-Identifier: Apache-2.0
#include "server/openai/embeddings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "server/limits.h"
#include "support/brake.h"
#include "support/fake_service.h"

namespace tessera::server::openai {
namespace {

using testing::FakeSession;
using Server = testing::FakeService;
using ::testing::HasSubstr;

constexpr const char* kPath = "/v1/embeddings";

std::string Body(std::string_view input, std::string_view members = {}) {
  return fmt::format(R"({{"model":"org/fake","input":{}{}{}}})", input, members.empty() ? "" : ",",
                     members);
}
std::vector<float> Vector(const json::Value& entry) {
  std::vector<float> values;
  for (const json::Value& value : entry.at("embedding").as_array())
    values.push_back(value.to_number<float>());
  return values;
}
std::vector<int32_t> Ids(std::string_view text) {
  return {text.begin(), text.end()};
}

TEST(Embeddings, ThePooledHiddenStatesAreTheModels) {
  Server server({});
  const FakeSession model({});
  const std::vector<int32_t> ids = Ids("hello");
  const json::Object last =
      server.Post(kPath, Body("\"hello\"", R"("pooling":"last","normalize":false)"));
  EXPECT_EQ(Vector(last.at("data").at(0)), model.Hidden(ids));
  std::vector<float> mean(model.Hidden(ids).size(), 0);
  for (size_t column = 0; column < mean.size(); ++column) {
    double sum = 0;
    for (size_t i = 1; i <= ids.size(); ++i) sum += model.Hidden(std::span(ids).first(i))[column];
    mean[column] = static_cast<float>(sum / static_cast<double>(ids.size()));
  }
  EXPECT_EQ(Vector(server.Post(kPath, Body("\"hello\"", "\"normalize\":false")).at("data").at(0)),
            mean);
}

TEST(Embeddings, AnAnswerHasTheShapeThatClientsKnow) {
  Server server({});
  const json::Object body = server.Post(kPath, Body(R"(["a",[98,99]])", "\"frobnicate\":1"));
  EXPECT_EQ(body.at("object").as_string(), "list");
  EXPECT_EQ(body.at("model").as_string(), "org/fake");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 3);
  EXPECT_EQ(body.at("usage").at("total_tokens").as_int64(), 3);
  EXPECT_EQ(body.at("warnings").at(0).at("param").as_string(), "frobnicate");
  ASSERT_EQ(body.at("data").as_array().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const json::Value& entry = body.at("data").at(i);
    EXPECT_EQ(entry.at("object").as_string(), "embedding");
    EXPECT_EQ(entry.at("index").as_int64(), static_cast<int64_t>(i));
    double squares = 0;
    for (const float value : Vector(entry)) squares += static_cast<double>(value) * value;
    EXPECT_NEAR(squares, 1, 1e-6) << "of length 1 by default";
  }
  EXPECT_EQ(Vector(body.at("data").at(1)),
            Vector(server.Post(kPath, Body("\"bc\"")).at("data").at(0)));
}

TEST(Embeddings, DimensionsCutAndNormaliseAnew) {
  const std::vector<float> pooled = {3, 4, 12};
  EmbeddingRequest request;
  request.dimensions = 2;
  EXPECT_EQ(FinishEmbedding(pooled, request), (std::vector<float>{0.6f, 0.8f}));
  request.is_normalized = false;
  EXPECT_EQ(FinishEmbedding(pooled, request), (std::vector<float>{3, 4}));
  request.is_normalized = true;
  EXPECT_EQ(FinishEmbedding({0, 0}, request), (std::vector<float>{0, 0}));
}

TEST(Embeddings, Base64HoldsTheSameFloats) {
  Server server({});
  const std::vector<float> floats = Vector(server.Post(kPath, Body("\"hello\"")).at("data").at(0));
  const json::Object body = server.Post(kPath, Body("\"hello\"", R"("encoding_format":"base64")"));
  const std::string text(body.at("data").at(0).at("embedding").as_string());
  std::string bytes;
  for (size_t at = 0; at + 4 <= text.size(); at += 4) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const size_t digit = kDigits.find(text[at + i]);
      group = group << 6 | static_cast<uint32_t>(digit == kDigits.npos ? 0 : digit);
    }
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift & 0xFF);
  }
  ASSERT_GE(bytes.size(), floats.size() * sizeof(float));
  std::vector<float> decoded(floats.size());
  std::memcpy(decoded.data(), bytes.data(), floats.size() * sizeof(float));
  EXPECT_EQ(decoded, floats);
  EXPECT_EQ(text.size(), (floats.size() * 4 + 2) / 3 * 4);
}

TEST(Embeddings, ThePrefixCacheChangesNothing) {
  Server server({});
  const std::string input = "\"" + std::string(60, 'a') + "\"";
  for (const char* pooling : {R"("pooling":"mean")", R"("pooling":"last")"}) {
    const json::Object fresh =
        server.Post(kPath, Body(input, std::string(pooling) + ",\"cache_prompt\":false"));
    for (int i = 0; i < 2; ++i) {
      const json::Object again = server.Post(kPath, Body(input, pooling));
      EXPECT_EQ(again.at("data"), fresh.at("data"));
    }
  }
  const json::Object last = server.Post(kPath, Body(input, R"("pooling":"last")"));
  EXPECT_EQ(last.at("usage").at("prompt_tokens_details").at("cached_tokens").as_int64(), 59);
}

TEST(Embeddings, BadInputNamesTheField) {
  Server server({});
  const auto param = [&](const std::string& body) {
    return std::string(server.Post(kPath, body, 400).at("error").at("param").as_string());
  };
  EXPECT_EQ(param(R"({"model":"org/fake"})"), "input");
  EXPECT_EQ(param(R"({"input":"x"})"), "model");
  for (const char* input : {"[]", "\"\"", "3", "[[]]", "[\"a\",3]", "[1000]", "{}"})
    EXPECT_EQ(param(Body(input)), "input") << input;
  const json::Object error = server.Post(kPath, Body("[]"), 400);
  EXPECT_THAT(std::string(error.at("error").at("message").as_string()), HasSubstr("input"));
  EXPECT_EQ(param(Body("\"x\"", "\"dimensions\":0")), "dimensions");
  EXPECT_EQ(param(Body("\"x\"", "\"dimensions\":9")), "dimensions");
  EXPECT_EQ(server.Call("POST", kPath, Body("\"x\"", "\"dimensions\":8")).status, 200);
  EXPECT_EQ(param(Body("\"x\"", R"("pooling":"max")")), "pooling");
  EXPECT_EQ(param(Body("\"x\"", R"("encoding_format":"hex")")), "encoding_format");
  EXPECT_EQ(param(Body("\"x\"", R"("strict":true,"a":1)")), "a");
  EXPECT_EQ(param(Body("\"" + std::string(257, 'x') + "\"")), "input");
}

TEST(Embeddings, AreCancelledAsOtherRequests) {
  testing::Brake brake;
  Server server(brake.Options());
  net::Response response;
  std::thread client([&] {
    response = server.Call("POST", kPath, Body("\"hello\""), {{"X-Request-Id", "mine"}});
  });
  brake.AwaitStep();
  EXPECT_EQ(server.Call("DELETE", "/v1/requests/mine").status, 200);
  brake.Release();
  client.join();
  EXPECT_TRUE(response.status == 499 || response.status == 200) << response.body;
}

}  // namespace
}  // namespace tessera::server::openai
