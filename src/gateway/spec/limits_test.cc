// SPDX-License-Identifier: Apache-2.0
//
// Every bound of limits.h that a request can meet, at n - 1, n and n + 1.
#include "gateway/limits.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>

#include "gateway/api/context.h"
#include "gateway/api/query.h"
#include "gateway/models/model_table.h"
#include "gateway/spec/read_spec.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

json::Object Body(std::string_view field, json::Value value) {
  json::Object body{{"name", "a"},
                    {"model_name", "m"},
                    {"min_workers", 0},
                    {"max_workers", 1},
                    {"per_worker", 4}};
  body[field] = std::move(value);
  return body;
}

std::string Letters(int64_t count) {
  return std::string(static_cast<size_t>(count), 'x');
}

json::Value Text(int64_t count) {
  return json::Value(Letters(count));
}

json::Value Labels(int64_t count) {
  json::Object labels;
  for (int64_t i = 0; i < count; ++i) labels["l" + std::to_string(i)] = "v";
  return labels;
}

/// {"a": "xx"} of so many bytes.
json::Value ObjectOfBytes(int64_t bytes) {
  constexpr std::string_view kFrame = R"({"a":""})";
  return json::Object{{"a", Letters(bytes - static_cast<int64_t>(kFrame.size()))}};
}

TEST(Limits, OfFieldsAdmitNAndRefuseNPlusOne) {
  const struct {
    const char* field;
    int64_t limit;
    std::function<json::Value(int64_t)> make;
  } cases[] = {
      {"name", kNameBytesMax, Text},
      {"inference_framework_image_tag", 256, Text},
      {"chat_template_override", kChatTemplateBytesMax, Text},
      {"chat_template", kChatTemplateBytesMax, Text},
      {"model_name", 1024, Text},
      {"labels", kLabelsMax, Labels},
      {"labels", kLabelBytesMax,
       [](int64_t n) {
         return json::Object{{"k", Letters(n)}};
       }},
      {"labels", kLabelBytesMax,
       [](int64_t n) {
         return json::Object{{Letters(n), "v"}};
       }},
      {"metadata", kMetadataBytesMax, ObjectOfBytes},
      {"max_workers", kWorkersMax, [](int64_t n) { return json::Value(n); }},
      {"per_worker", kPerWorkerMax, [](int64_t n) { return json::Value(n); }},
      {"num_shards", kShardsMax, [](int64_t n) { return json::Value(n); }},
      {"tensor_parallel_size", kShardsMax, [](int64_t n) { return json::Value(n); }},
      {"queue_message_timeout_seconds", kTimeoutSecondsMax,
       [](int64_t n) { return json::Value(n); }},
      {"default_callback_url", 2048,
       [](int64_t n) { return json::Value("http://h/" + Letters(n - 9)); }},
  };
  for (const auto& test : cases) {
    for (const int64_t n : {test.limit - 1, test.limit, test.limit + 1}) {
      const auto asked = ReadCreate(Body(test.field, test.make(n)));
      EXPECT_EQ(asked.has_value(), n <= test.limit) << test.field << " " << n;
      if (!asked.has_value()) {
        EXPECT_NE(ErrorBody(asked.error()).find(test.field), std::string::npos) << test.field;
      }
    }
  }
}

TEST(Limits, OfBodies) {
  constexpr uint64_t kBytes = 1000;
  for (const uint64_t n : {kBytes - 1, kBytes, kBytes + 1}) {
    net::Request request;
    request.body = json::Serialize(ObjectOfBytes(static_cast<int64_t>(n)));
    ASSERT_EQ(request.body.size(), n);
    const auto body = BodyObject(request, kBytes);
    EXPECT_EQ(body.has_value(), n <= kBytes);
    if (!body.has_value()) {
      EXPECT_EQ(body.error().status, 413);
    }
  }
  for (const int depth : {63, 64, 65}) {
    net::Request request;
    request.body = R"({"a":)" + std::string(static_cast<size_t>(depth - 1), '[') +
                   std::string(static_cast<size_t>(depth - 1), ']') + "}";
    EXPECT_EQ(BodyObject(request, kSpecBytesMax).has_value(), depth <= 64) << depth;
  }
}

TEST(Limits, OfPages) {
  for (const int64_t n : {int64_t{0}, int64_t{1}, kPageMax - 1, kPageMax, kPageMax + 1}) {
    net::Request request;
    request.query = {{"limit", std::to_string(n)}};
    EXPECT_EQ(QueryNumber(request, "limit", 1, kPageMax, 7).has_value(), n >= 1 && n <= kPageMax);
  }
}

TEST(Limits, OfTheFileOfAliases) {
  const testing::TempDir dir;
  const std::filesystem::path file = dir.path() / "models.toml";
  for (const uint64_t n : {kAliasFileBytesMax - 1, kAliasFileBytesMax, kAliasFileBytesMax + 1}) {
    std::ofstream(file, std::ios::trunc) << "# " << std::string(n - 3, 'x') << "\n";
    const auto table = ModelTable::Read({.aliases_file = file, .model_root = {}});
    EXPECT_EQ(table.has_value(), n <= kAliasFileBytesMax) << n;
  }
}

}  // namespace
}  // namespace tessera::gateway
