// SPDX-License-Identifier: Apache-2.0
#include "gateway/spec/read_spec.h"

#include <gtest/gtest.h>

#include <string>

#include "base/utf8.h"
#include "gateway/limits.h"
#include "gateway/spec/assign_field.h"
#include "gateway/spec/field_table.h"
#include "gateway/spec/resources.h"

namespace tessera::gateway {
namespace {

json::Object Body(std::string_view extra = "{}") {
  auto body = json::Parse(R"({"name": "a-1", "model_name": "m", "min_workers": 1, "max_workers": 2,
    "per_worker": 4, "labels": {}, "metadata": {}})",
                          {}, "test")
                  ->get_object();
  const auto more = json::Parse(extra, {}, "test")->get_object();
  for (const auto& member : more) body[member.key()] = member.value();
  return body;
}

std::string ErrorOf(const json::Object& body) {
  const auto asked = ReadCreate(body);
  return asked.has_value() ? "accepted"
                           : std::to_string(asked.error().status) + " " + ErrorBody(asked.error());
}

TEST(ReadCreate, TakesTheDefaultsOfThePythonClient) {
  const auto asked = ReadCreate(Body(R"({"labels": {}, "min_workers": 0, "nodes_per_worker": 1,
    "cpus": null, "gpus": null, "memory": null, "storage": null, "gpu_type": null, "quantize": null,
    "max_model_len": null, "inference_framework": "vllm", "source": "hugging_face"})"));
  ASSERT_TRUE(asked.has_value()) << ErrorBody(asked.error());
  EXPECT_EQ(asked->spec.min_workers, 0);
  EXPECT_EQ(asked->spec.resources.nodes_per_worker, 1);
  EXPECT_EQ(asked->spec.resources.cpus, std::nullopt);
  EXPECT_TRUE(asked->spec.engine.empty());
  EXPECT_TRUE(asked->warnings.empty());
}

TEST(ReadCreate, NamesEachFieldThatIsWrong) {
  const struct {
    const char* extra;
    const char* field;
  } cases[] = {
      {R"({"name": ""})", "name"},
      {R"({"name": "Bad_Name!"})", "name"},
      {R"({"name": "-a"})", "name"},
      {R"({"name": "\u0430"})", "name"},
      {R"({"min_workers": -1})", "min_workers"},
      {R"({"min_workers": 3})", "min_workers"},
      {R"({"max_workers": "many"})", "max_workers"},
      {R"({"max_workers": 251})", "max_workers"},
      {R"({"per_worker": 0})", "per_worker"},
      {R"({"per_worker": 1.5})", "per_worker"},
      {R"({"endpoint_type": "teleport"})", "endpoint_type"},
      {R"({"endpoint_type": "async"})", "endpoint_type"},
      {R"({"inference_framework": "abacus"})", "inference_framework"},
      {R"({"labels": ["x"]})", "labels"},
      {R"({"labels": {"user_id": "x"}})", "labels"},
      {R"({"labels": {"team": "not/ok!"}})", "labels"},
      {R"({"labels": {"team": 3}})", "labels"},
      {R"({"metadata": {"_llm": 1}})", "metadata"},
      {R"({"gpus": 2})", "num_shards"},
      {R"({"memory": "40Potatoes"})", "memory"},
      {R"({"cpus": -1})", "cpus"},
      {R"({"default_callback_url": "nope"})", "default_callback_url"},
      {R"({"default_callback_auth": {"kind": "basic"}})", "default_callback_auth"},
      {R"({"post_inference_hooks": ["dance"]})", "post_inference_hooks"},
      {R"({"max_model_len": 0})", "max_model_len"},
      {R"({"public_inference": "yes"})", "public_inference"},
  };
  for (const auto& test : cases) {
    const std::string error = ErrorOf(Body(test.extra));
    EXPECT_TRUE(error.starts_with("422 ") || error.starts_with("400 ")) << test.extra << error;
    EXPECT_NE(error.find(test.field), std::string::npos) << test.extra << error;
  }
}

TEST(ReadCreate, ListsWhatIsMissing) {
  const std::string error = ErrorOf({});
  for (const char* name : {"name", "model_name", "min_workers", "max_workers", "per_worker"})
    EXPECT_NE(error.find(std::string("[\"body\",\"") + name + "\"]"), std::string::npos) << error;
}

TEST(ReadCreate, NamesMayHaveSixtyThreeBytes) {
  for (const size_t bytes : {kNameBytesMax - 1, kNameBytesMax, kNameBytesMax + 1}) {
    json::Object body = Body();
    body["name"] = std::string(bytes, 'a');
    EXPECT_EQ(ReadCreate(body).has_value(), bytes <= kNameBytesMax) << bytes;
  }
}

TEST(ReadCreate, UnknownFieldsAreWarnings) {
  const auto asked = ReadCreate(Body(R"({"colour": "red", "endpoint_type": "sync"})"));
  ASSERT_TRUE(asked.has_value());
  ASSERT_EQ(asked->warnings.size(), 2u);
  EXPECT_NE(asked->warnings[0].find("colour"), std::string::npos);
  EXPECT_EQ(asked->spec.endpoint_type, "streaming");
}

// The record's warnings are stored as JSON: half a character would keep a gateway from starting.
TEST(ReadCreate, WarningsAreUtf8WhateverTheFieldIsCalled) {
  for (size_t before = 60; before < 66; ++before) {
    json::Object body = Body();
    body[std::string(before, 'a') + "\xC3\xA9\xF0\x9F\x98\x80" + "rest"] = 1;
    const auto asked = ReadCreate(body);
    ASSERT_TRUE(asked.has_value());
    ASSERT_EQ(asked->warnings.size(), 1u);
    EXPECT_TRUE(IsUtf8(asked->warnings[0])) << before;
  }
  ApiError error{.status = 404, .text = "There is no /\xFF"};
  EXPECT_TRUE(json::Parse(ErrorBody(error), {}, "error").has_value());
}

TEST(ReadCreate, CountsUnknownFieldsBeyondTheFirst) {
  json::Object body = Body();
  for (int i = 0; i < 1000; ++i) body["x" + std::to_string(i)] = i;
  const auto asked = ReadCreate(body);
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->warnings.size(), 17u);
  EXPECT_EQ(asked->warnings.back(), "984 more fields: no such fields, ignored");
}

TEST(ReadUpdate, NullKeepsAndClearClears) {
  const auto before = ReadCreate(Body(R"({"quantize": "awq", "labels": {"team": "red"}})"));
  const auto kept = ReadUpdate(before->spec, {{"quantize", nullptr}, {"max_workers", 9}});
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->spec.quantize, "awq");
  EXPECT_EQ(kept->spec.max_workers, 9);
  EXPECT_EQ(kept->spec.labels, before->spec.labels);
  const auto cleared = ReadUpdate(before->spec, {{"clear", json::Array{"quantize"}}});
  ASSERT_TRUE(cleared.has_value());
  EXPECT_EQ(cleared->spec.quantize, std::nullopt);
  EXPECT_FALSE(ReadUpdate(before->spec, {{"clear", json::Array{"name"}}}).has_value());
  EXPECT_FALSE(ReadUpdate(before->spec, {{"clear", "quantize"}}).has_value());
}

TEST(ReadUpdate, NeverChangesWhatIsFixed) {
  const auto before = ReadCreate(Body());
  EXPECT_TRUE(ReadUpdate(before->spec, {{"name", "a-1"}}).has_value());
  EXPECT_FALSE(ReadUpdate(before->spec, {{"name", "b"}}).has_value());
  EXPECT_FALSE(ReadUpdate(before->spec, {{"nodes_per_worker", 2}}).has_value());
  EXPECT_FALSE(ReadUpdate(before->spec, {{"min_workers", 3}}).has_value());
}

TEST(Spec, EveryFieldReadsBackAsItWasWritten) {
  json::Object body = Body(R"({"cpus": 32, "memory": "40Gi", "storage": 1.5, "gpus": 4,
    "num_shards": 4, "gpu_type": "nvidia-ampere-a10", "labels": {"team": "red"},
    "metadata": {"a": [1, {"b": null}]}, "post_inference_hooks": ["callback"],
    "default_callback_url": "http://h/x", "default_callback_auth": {"kind": "basic",
    "username": "u", "password": "p"}, "billing_tags": {"x": 1}, "prewarm": false,
    "high_priority": true, "public_inference": false, "task_expires_seconds": 5,
    "queue_message_timeout_seconds": 6, "optimize_costs": true, "max_model_len": 2048,
    "rope_scaling": {"type": "yarn"}, "checkpoint_path": "s3://b/k", "quantize": "awq",
    "chat_template_override": "{{ x }}"})");
  const auto asked = ReadCreate(body);
  ASSERT_TRUE(asked.has_value()) << ErrorBody(asked.error());
  EXPECT_EQ(asked->spec.resources.cpus, "32");
  EXPECT_EQ(asked->spec.resources.storage, "1.5");
  const auto again = ReadSpec(WriteSpec(asked->spec));
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ(*again, asked->spec);
  // Every field of the table has a place and is written.
  const json::Object written = WriteSpec(asked->spec);
  for (const Field& field : EndpointFields())
    EXPECT_EQ(written.contains(field.name), field.use != FieldUse::kEngine) << field.name;
}

TEST(Spec, WhatIsAcceptedIsReadBack) {
  for (const char* extra : {R"({"cpus": 0.1})", R"({"cpus": 5e-324})", R"({"memory": 1e-7})",
                            R"({"memory": 4503599627370496})", R"({"memory": 1e15})",
                            R"({"cpus": 0})", R"({"cpus": -0.0})", R"({"cpus": 1e300})"}) {
    const auto asked = ReadCreate(Body(extra));
    if (!asked.has_value()) continue;
    const auto again = ReadSpec(WriteSpec(asked->spec));
    ASSERT_TRUE(again.has_value()) << extra << again.error().ToString();
    EXPECT_EQ(*again, asked->spec) << extra;
  }
  EXPECT_TRUE(ReadCreate(Body(R"({"cpus": 0.1})")).has_value());
  EXPECT_EQ(ReadCreate(Body(R"({"memory": 1e15})"))->spec.resources.memory, "1000000000000000");
}

TEST(Spec, OnlyWhatAProcessSeesNeedsNewWorkers) {
  const EndpointSpec before = ReadCreate(Body())->spec;
  const auto after = [&](json::Object change) { return ReadUpdate(before, change)->spec; };
  EXPECT_FALSE(NeedsNewWorkers(before, after({{"max_workers", 7}})));
  EXPECT_FALSE(NeedsNewWorkers(before, after({{"labels", json::Object{{"team", "x"}}}})));
  EXPECT_TRUE(NeedsNewWorkers(before, after({{"model_name", "n"}})));
  EXPECT_TRUE(NeedsNewWorkers(before, after({{"max_model_len", 64}})));
}

TEST(ParseQuantity, ReadsWhatKubernetesWrites) {
  EXPECT_EQ(ParseQuantity("32"), 32000);
  EXPECT_EQ(ParseQuantity("500m"), 500);
  EXPECT_EQ(ParseQuantity("40Gi"), (int64_t{40} << 30) * 1000);
  EXPECT_EQ(ParseQuantity("1.5k"), 1500000);
  EXPECT_EQ(ParseQuantity("1e3"), 1000000);
  for (const char* text :
       {"", "-1", "+1", "inf", "nan", "1 Gi", "40Potatoes", "Gi", "1e400", "9Ei", "0x10"})
    EXPECT_EQ(ParseQuantity(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tessera::gateway
