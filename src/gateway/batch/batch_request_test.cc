// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_request.h"

#include <gtest/gtest.h>

#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

json::Object Body() {
  return {{"output_data_path", "out.json"},
          {"model_config", json::Object{{"model", "m"}}},
          {"content", json::Object{{"prompts", json::Array{"a"}}}}};
}

/// The body with one member more or another value.
json::Object With(std::string_view name, json::Value value) {
  json::Object body = Body();
  body[name] = std::move(value);
  return body;
}

ApiError ErrorOf(const json::Object& body, BatchVersion version = BatchVersion::kV2) {
  const auto record = ReadBatchRequest(body, version);
  return record.has_value() ? ApiError{.status = 200} : record.error();
}

TEST(BatchRequest, WhatAClientSendsIsKept) {
  json::Object body = Body();
  body["priority"] = "high";
  body["data_parallelism"] = 2;
  body["max_runtime_sec"] = 60;
  body["labels"] = json::Object{{"team", "a"}};
  body["metadata"] = json::Object{{"k", "v"}};
  body["cpus"] = "1";
  body["tool_config"] = nullptr;
  body["model_config"] = json::Object{{"model", "m"},         {"max_context_length", 128},
                                      {"num_shards", 1},      {"checkpoint_path", nullptr},
                                      {"seed", nullptr},      {"labels", json::Object{{"x", "y"}}},
                                      {"enforce_eager", true}};
  const auto record = ReadBatchRequest(body, BatchVersion::kV2);
  ASSERT_TRUE(record.has_value()) << record.error().text;
  EXPECT_EQ(record->model, "m");
  EXPECT_EQ(record->priority, "high");
  EXPECT_EQ(record->max_runtime_s, 60);
  EXPECT_EQ(record->metadata.at("k"), "v");
  EXPECT_FALSE(record->model_config.contains("seed")) << "null is not given";
  const json::Object& endpoint = record->endpoint_body;
  EXPECT_EQ(endpoint.at("model_name"), "m");
  EXPECT_EQ(endpoint.at("max_workers"), 2);
  EXPECT_EQ(endpoint.at("max_model_len"), 128);
  EXPECT_EQ(endpoint.at("public_inference"), false);
  EXPECT_EQ(endpoint.at("cpus"), "1");
  EXPECT_EQ(endpoint.at("labels"), (json::Object{{"team", "a"}, {"x", "y"}}));
}

TEST(BatchRequest, FieldsAreNamed) {
  const auto loc = [](const json::Object& body) {
    const ApiError error = ErrorOf(body);
    EXPECT_EQ(error.status, 422) << error.text;
    std::string joined;
    if (!error.fields.empty())
      for (const std::string& step : error.fields[0].loc) joined += "/" + step;
    return joined;
  };
  EXPECT_EQ(loc(With("output_data_path", nullptr)), "/body/output_data_path");
  EXPECT_EQ(loc(With("output_data_path", 7)), "/body/output_data_path");
  EXPECT_EQ(loc(With("model_config", "m")), "/body/model_config");
  EXPECT_EQ(loc(With("model_config", json::Object())), "/body/model_config/model");
  EXPECT_EQ(loc(With("model_config", json::Object{{"model", "m"}, {"num_shards", 0}})),
            "/body/model_config/num_shards");
  EXPECT_EQ(loc(With("model_config", json::Object{{"model", "m"}, {"max_context_length", 0}})),
            "/body/model_config/max_context_length");
  EXPECT_EQ(loc(With("gpu_type", "abacus")), "/body/gpu_type");
  EXPECT_EQ(loc(With("data_parallelism", 0)), "/body/data_parallelism");
}

TEST(BatchRequest, LimitsHoldAtTheirEdges) {
  EXPECT_EQ(ErrorOf(With("data_parallelism", kBatchParallelismMax)).status, 200);
  EXPECT_EQ(ErrorOf(With("data_parallelism", kBatchParallelismMax + 1)).status, 422);
  EXPECT_EQ(ErrorOf(With("max_runtime_sec", 1)).status, 200);
  EXPECT_EQ(ErrorOf(With("max_runtime_sec", kBatchRuntimeSecondsMax)).status, 200);
  EXPECT_EQ(ErrorOf(With("max_runtime_sec", kBatchRuntimeSecondsMax + 1)).status, 422);
  json::Object metadata;
  for (size_t i = 0; i < kBatchMetadataMax; ++i) metadata[std::to_string(i)] = "v";
  EXPECT_EQ(ErrorOf(With("metadata", metadata)).status, 200);
  metadata["one more"] = "v";
  EXPECT_EQ(ErrorOf(With("metadata", metadata)).status, 400);
}

TEST(BatchRequest, WhatIsNotOfferedIsSaid) {
  EXPECT_EQ(ErrorOf(With("tool_config", json::Object{{"name", "code_evaluator"}})).status, 400);
  EXPECT_EQ(ErrorOf(With("data_parallelism", 2), BatchVersion::kV1).status, 400);
  EXPECT_EQ(ErrorOf(With("data_parallelism", 1), BatchVersion::kV1).status, 200);
  EXPECT_EQ(ErrorOf(With("priority", "urgent")).status, 400);
  EXPECT_EQ(ErrorOf(With("metadata", json::Object{{"k", 1}})).status, 400);
  for (const char* path : {"s3://b/k", "gs://b/k", "https://h/k", "file:///etc/passwd"}) {
    EXPECT_TRUE(ErrorOf(With("output_data_path", path)).text.contains("is not read or written"));
    json::Object body = With("input_data_path", path);
    body.erase("content");
    EXPECT_EQ(ErrorOf(body).status, 400) << path;
  }
}

TEST(BatchRequest, RowsComeFromOnePlace) {
  EXPECT_EQ(ErrorOf(With("content", nullptr)).status, 400);
  EXPECT_EQ(ErrorOf(With("input_data_path", "in.json")).status, 400);
  json::Object body = With("input_data_path", "in.json");
  body["content"] = nullptr;
  EXPECT_EQ(ErrorOf(body).status, 200);
}

TEST(BatchRequest, OutputsMayBecomeFiles) {
  EXPECT_EQ(ErrorOf(With("output_data_path", "files://out.json")).status, 200);
  for (const char* bad : {"files://", "files://a/b", "files://../b", "file-01abc"})
    EXPECT_EQ(ErrorOf(With("output_data_path", bad)).status, 400) << bad;
  EXPECT_EQ(NewFileName("files://x"), "x");
  EXPECT_TRUE(IsFileId("file-1") && !IsFileId("file-1/x") && !IsFileId("files://x"));
}

TEST(BatchRequest, UnknownFieldsAreWarnings) {
  const auto record = ReadBatchRequest(With("colour", "red"), BatchVersion::kV2);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->warnings, json::Array{"colour: no such field, ignored"});
}

TEST(OpenAiBatch, NeedsItsFields) {
  const json::Object good{{"input_file_id", "file-1"},
                          {"endpoint", "/v1/chat/completions"},
                          {"completion_window", "24h"},
                          {"metadata", nullptr}};
  ASSERT_TRUE(ReadOpenAiBatch(good).has_value());
  EXPECT_EQ(ReadOpenAiBatch(good)->form, BatchForm::kLines);
  for (const auto& [name, bad] : {std::pair<const char*, json::Value>{"input_file_id", "x"},
                                  {"endpoint", "/v1/files"},
                                  {"completion_window", "1h"},
                                  {"metadata", 7}}) {
    json::Object body = good;
    body[name] = bad;
    const auto refused = ReadOpenAiBatch(body);
    ASSERT_FALSE(refused.has_value()) << name;
    EXPECT_EQ(refused.error().status, 400);
    EXPECT_TRUE(refused.error().text.starts_with(name)) << refused.error().text;
  }
}

}  // namespace
}  // namespace tessera::gateway
