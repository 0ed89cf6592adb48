// SPDX-License-Identifier: Apache-2.0
//
// /generate over a loopback socket: shapes of answers, batches by position, events, refusals.
#include <gtest/gtest.h>

#include <array>

#include "support/fake_service.h"

namespace tessera::server::shortfin {
namespace {

using testing::FakeService;

json::Value Parsed(const std::string& text) {
  return json::Parse(text, {}, "response").value();
}

std::string Body(FakeService* service, const std::string& body, int status = 200) {
  const net::Response response = service->Call("POST", "/generate", body);
  EXPECT_EQ(response.status, status) << response.body;
  return response.body;
}

TEST(Generate, AnswersInTheOriginalShape) {
  FakeService service(FakeService::Says("abc"));
  const std::string want = R"({"responses":[{"prompt":"say\n","responses":[{"text":"abc"}]}]})";
  const std::string body = R"({"text":"say\n","sampling_params":{"temperature":0.0}})";
  EXPECT_EQ(Body(&service, body), want);
  EXPECT_EQ(service.Call("PUT", "/generate", body).body, want);
}

TEST(Generate, BatchesAreKeyedByPosition) {
  FakeService service({});
  const auto texts = [&](const std::string& prompts) {
    const json::Value body =
        Parsed(Body(&service, R"({"sampling_params":{"temperature":0,"max_completion_tokens":5},)" +
                                  prompts + "}"));
    std::vector<std::string> found;
    for (const json::Value& row : body.at("responses").as_array())
      found.emplace_back(row.at("responses").at(0).at("text").as_string());
    return found;
  };
  const auto a = texts(R"("text":"a")"), b = texts(R"("text":"b")");
  EXPECT_EQ(texts(R"("text":["a","b","a","a"])"),
            (std::vector<std::string>{a[0], b[0], a[0], a[0]}));
  EXPECT_EQ(texts(R"("input_ids":[97])"), a);
  EXPECT_EQ(texts(R"("input_ids":[[97],[98]])"), (std::vector<std::string>{a[0], b[0]}));
}

TEST(Generate, BeamsAreTheInnerResponses) {
  FakeService service({});
  const json::Value body = Parsed(Body(
      &service, R"({"text":["a","b"],"sampling_params":)"
                R"([{"num_beams":3,"max_completion_tokens":4},{"max_completion_tokens":4}]})"));
  const json::Array& first = body.at("responses").at(0).at("responses").as_array();
  ASSERT_EQ(first.size(), 3u);
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(body.at("responses").at(1).at("responses").as_array().size(), 1u);
  const json::Value ids =
      Parsed(Body(&service, R"({"text":"a","return_input_ids":true,"sampling_params":)"
                            R"({"num_beams":3,"max_completion_tokens":4}})"));
  ASSERT_EQ(ids.as_array().size(), 3u);
  EXPECT_TRUE(ids.at(0).is_array());
}

TEST(Generate, IdsComeAsBareArrays) {
  FakeService service(FakeService::Says("abc"));
  const std::string rest = R"(,"return_input_ids":true,"sampling_params":{"temperature":0}})";
  EXPECT_EQ(Body(&service, R"({"text":"x\n")" + rest), "[97,98,99]");
  EXPECT_EQ(Body(&service, R"({"text":["x\n","y\n"])" + rest), "[[97,98,99],[97,98,99]]");
}

TEST(Generate, EachPromptMayHaveItsOwnParameters) {
  FakeService service(FakeService::Says("abcdefgh"));
  const json::Value body = Parsed(Body(
      &service,
      R"({"text":["x\n","y\n"],"sampling_params":[{"temperature":0,"max_completion_tokens":2},{"temperature":0,"max_completion_tokens":5}]})"));
  EXPECT_EQ(body.at("responses").at(0).at("responses").at(0).at("text").as_string().size(), 2u);
  EXPECT_EQ(body.at("responses").at(1).at("responses").at(0).at("text").as_string().size(), 5u);
}

TEST(Generate, StreamsDeltasWithIndexAndRid) {
  FakeService service(FakeService::Says("a\u00fcb"));
  const std::vector<std::string> events = service.Stream(
      "/generate",
      R"({"text":["x\n","y\n"],"rid":["r","s"],"stream":true,"sampling_params":{"temperature":0}})");
  ASSERT_EQ(events.back(), "[DONE]");
  std::array<std::string, 2> texts;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::Value event = Parsed(events[i]);
    const auto index = static_cast<size_t>(event.at("index").as_int64());
    EXPECT_EQ(event.at("rid").as_string(), index == 0 ? "r" : "s");
    texts.at(index) += std::string_view(event.at("text").as_string());
  }
  EXPECT_EQ(texts, (std::array<std::string, 2>{"a\u00fcb", "a\u00fcb"}));
}

TEST(Generate, UnknownFieldsAreWarnedAbout) {
  FakeService service(FakeService::Says("a"));
  const json::Value body = Parsed(
      Body(&service, R"({"text":"x\n","foo":1,"modalities":[],"sampling_params":{"bar":3}})"));
  ASSERT_EQ(body.at("warnings").as_array().size(), 2u);
  EXPECT_EQ(body.at("warnings").at(0).at("param").as_string(), "foo");
  EXPECT_EQ(body.at("warnings").at(1).at("param").as_string(), "bar");
  const auto streamed = service.Stream(
      "/generate", R"({"text":"x\n","foo":1,"stream":true,"sampling_params":{"temperature":0}})");
  EXPECT_EQ(Parsed(streamed.front()).at("warnings").at(0).at("param").as_string(), "foo");
  for (size_t i = 1; i + 1 < streamed.size(); ++i)
    EXPECT_FALSE(Parsed(streamed[i]).as_object().contains("warnings"));
}

TEST(Generate, BadRequestsSayWhy) {
  FakeService service(FakeService::Says("a"));
  for (const char* body : {"{",
                           "[]",
                           "{}",
                           R"({"text":"x","input_ids":[1]})",
                           R"({"text":3})",
                           R"({"text":""})",
                           R"({"text":[]})",
                           R"({"text":["a",1]})",
                           R"({"input_ids":[1000000000]})",
                           R"({"input_ids":[]})",
                           R"({"text":["a","b"],"sampling_params":[{}]})",
                           R"({"text":"x","sampling_params":3})",
                           R"({"text":"x","sampling_params":{"temperature":-1}})",
                           R"({"text":"x","sampling_params":{"top_p":7}})",
                           R"({"text":"x","sampling_params":{"max_completion_tokens":0}})",
                           R"({"text":"x","sampling_params":{"max_completion_tokens":256}})",
                           R"({"text":"x","sampling_params":{"num_beams":0}})",
                           R"({"text":"x","sampling_params":{"num_beams":33}})",
                           R"({"text":"x","sampling_params":{"num_beams":2},"stream":true})",
                           R"({"text":"x","sampling_params":{"n":2}})",
                           R"({"text":["a","b"],"rid":"x"})",
                           R"({"text":["a","b"],"rid":["x"]})",
                           R"({"text":"x","stream":1})"}) {
    const json::Value answer = Parsed(Body(&service, body, 400));
    EXPECT_EQ(answer.at("code").as_string(), "INVALID_REQUEST_ARGS") << body;
    EXPECT_FALSE(answer.at("error").as_string().empty());
  }
}

}  // namespace
}  // namespace tessera::server::shortfin
