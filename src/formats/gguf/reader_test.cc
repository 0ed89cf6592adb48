// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/reader.h"

#include <gtest/gtest.h>

#include <cstring>

#include "formats/open.h"
#include "support/fixtures.h"
#include "tensor/convert.h"

namespace tessera::formats {
namespace {

using testing::ReadJson;
using testing::Shared;
using testing::TestData;

// A metadata value as the JSON that cases.json expects.
json::Value ToJson(const MetadataValue& value) {
  return std::visit(
      []<class T>(const T& held) -> json::Value {
        if constexpr (std::is_same_v<T, std::string>) {
          return json::Value(std::string_view(held));
        } else if constexpr (std::is_same_v<T, std::vector<NestedArray>>) {
          json::Array array;
          for (const NestedArray& inner : held) array.push_back(ToJson(inner.value));
          return array;
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          json::Array array;
          for (const std::string& text : held) array.emplace_back(std::string_view(text));
          return array;
        } else if constexpr (requires { typename T::value_type; }) {
          json::Array array;
          for (const auto element : held) array.emplace_back(element);
          return array;
        } else {
          return json::Value(held);
        }
      },
      value);
}

TEST(GgufReader, EveryMalformedFixtureIsRefusedWithFileAndPlace) {
  const json::Value cases = ReadJson(Shared("fixtures/gguf/cases.json"));
  size_t count = 0;
  for (const json::Value& value : cases.as_object().at("malformed").as_array()) {
    const json::Object& row = value.as_object();
    if (!row.at("must_reject").as_bool()) continue;
    const std::string file(std::string_view(row.at("file").as_string()));
    const auto index = Open(Shared("fixtures/gguf/" + file));
    ASSERT_FALSE(index.has_value()) << file;
    const std::string text = index.error().ToString();
    EXPECT_NE(text.find(file), std::string::npos) << text;
    EXPECT_TRUE(text.find("offset") != std::string::npos ||
                text.find("metadata") != std::string::npos ||
                text.find("tensor") != std::string::npos)
        << text;
    ++count;
  }
  EXPECT_GE(count, 26u);
}

TEST(GgufReader, ErrorsOfOneClassAreTold) {
  const auto message = [](const char* name) {
    const auto index = Open(Shared(std::string("fixtures/gguf/malformed/") + name + ".gguf"));
    return index.has_value() ? std::string("accepted") : index.error().message();
  };
  EXPECT_EQ(message("version_99"), "offset 4: version is 99, expected 2 or 3");
  EXPECT_EQ(message("version_byteswapped"),
            "offset 4: version is 50331648, expected 2 or 3 (a big-endian file?)");
  EXPECT_EQ(message("duplicate_key"),
            "offset 107: metadata key general.name occurs twice, expected once");
  EXPECT_EQ(message("duplicate_tensor"), "tensor a occurs twice, expected once");
  EXPECT_EQ(message("alignment_not_pow2"),
            "metadata general.alignment is 24, expected a power of two up to 1048576");
  EXPECT_EQ(message("offset_misaligned"),
            "offset 132: tensor a: data offset is 4, expected a multiple of the alignment 32");
  EXPECT_EQ(message("block_misaligned_row"),
            "offset 128: tensor a: a row of 33 elements is no multiple of Q8_0's block of 32");
  EXPECT_EQ(message("overlapping"), "tensor a at 192 to 256 overlaps tensor b at 224");
}

TEST(GgufReader, EveryValidFixtureReadsAsExpected) {
  const json::Value cases = ReadJson(Shared("fixtures/gguf/cases.json"));
  for (const json::Value& value : cases.as_object().at("valid").as_array()) {
    const json::Object& row = value.as_object();
    const std::string file(std::string_view(row.at("file").as_string()));
    const auto index = Open(Shared("fixtures/gguf/" + file));
    ASSERT_TRUE(index.has_value()) << index.error().ToString();
    for (const auto& [key, expected] : row.at("expect_kv").as_object()) {
      const MetadataValue* actual = index->metadata().Find(key);
      ASSERT_NE(actual, nullptr) << file << " " << std::string_view(key);
      EXPECT_EQ(ToJson(*actual), expected) << file << " " << std::string_view(key);
    }
    if (row.at("tensor_a").is_null()) {
      EXPECT_TRUE(index->entries().empty());
      continue;
    }
    const ParameterEntry* entry = index->Find("a");
    ASSERT_NE(entry, nullptr) << file;
    std::vector<float> values(static_cast<size_t>(entry->shape.elements()));
    ASSERT_TRUE(tensor::ToFloat(entry->dtype, index->View(*entry).bytes, values).ok());
    EXPECT_EQ(ToJson(MetadataValue(values)), row.at("tensor_a")) << file;
  }
}

TEST(GgufReader, AllKindsOfMetadataKeepTheirTypes) {
  const auto index = Open(Shared("fixtures/gguf/valid/all_kv_types.gguf"));
  ASSERT_TRUE(index.has_value());
  const Metadata& metadata = index->metadata();
  const auto kind = [&](const char* key) { return KindName(*metadata.Find(key)); };
  EXPECT_EQ(kind("x.u8"), "u8");
  EXPECT_EQ(kind("x.i8"), "i8");
  EXPECT_EQ(kind("x.f32"), "f32");
  EXPECT_EQ(kind("x.f64"), "f64");
  EXPECT_EQ(kind("x.bool"), "bool");
  EXPECT_EQ(kind("x.arr_bool"), "array of bool");
  EXPECT_EQ(kind("x.arr_empty"), "array of i32");
  EXPECT_EQ(kind("x.arr_nested"), "array of arrays");
  EXPECT_EQ(metadata.Int("x.i8").value(), -128);
  EXPECT_EQ(metadata.Number("x.f64").value(), 0.1);
  EXPECT_EQ(metadata.Number("x.u16").value(), 65535);
  EXPECT_EQ(metadata.Int("x.u64").error().code(), Code::kOutOfRange);
  EXPECT_EQ(metadata.Int("x.str").error().message(), "metadata x.str is text, expected an integer");
  EXPECT_EQ(metadata.Int("absent").error().code(), Code::kNotFound);
  EXPECT_EQ(metadata.Strings("x.arr_str")->size(), 3u);
  EXPECT_EQ(metadata.Strings("x.arr_f"), nullptr);
  EXPECT_EQ(metadata.Floats("x.arr_f")->at(1), -1.0f);
  EXPECT_EQ(metadata.Ints("x.arr_empty").value().size(), 0u);
  EXPECT_EQ(metadata.Ints("x.str").error().code(), Code::kInvalidArgument);
}

TEST(GgufReader, DimensionsAreOutermostFirst) {
  const auto index = Open(Shared("fixtures/gguf/types.gguf"));
  ASSERT_TRUE(index.has_value()) << index.error().ToString();
  const ParameterEntry* entry = index->Find("t.Q4_K");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->shape, (tensor::Shape{2, 512}));
  EXPECT_EQ(entry->bytes, 2u * 2 * 144);
  EXPECT_EQ(index->files()[0].version, 3u);
  EXPECT_EQ(index->files()[0].alignment, 32u);
}

TEST(GgufReader, TypesFixtureGivesTheExpectedFloats) {
  const auto index = Open(Shared("fixtures/gguf/types.gguf"));
  ASSERT_TRUE(index.has_value());
  const json::Value expected = ReadJson(Shared("fixtures/gguf/types_expected.json"));
  const std::string floats = testing::ReadAll(Shared("fixtures/gguf/types_expected.f32"));
  const json::Object& tensors = expected.as_object().at("tensors").as_object();
  ASSERT_EQ(index->entries().size(), tensors.size());
  for (const auto& [name, value] : tensors) {
    const ParameterEntry* entry = index->Find(name);
    ASSERT_NE(entry, nullptr);
    std::vector<float> actual(static_cast<size_t>(entry->shape.elements()));
    ASSERT_TRUE(tensor::ToFloat(entry->dtype, index->View(*entry).bytes, actual).ok());
    const auto offset = static_cast<size_t>(value.as_object().at("f32_offset").as_int64());
    // Bytes are equal, NaN included: the widened payloads agree.
    EXPECT_EQ(std::memcmp(actual.data(), floats.data() + offset, actual.size() * sizeof(float)), 0)
        << std::string_view(name);
  }
}

TEST(GgufReader, OpensTheRealModel) {
  const auto index = Open(TestData("SmolLM2-135M-Instruct.Q4_1.gguf"));
  ASSERT_TRUE(index.has_value()) << index.error().ToString();
  EXPECT_EQ(index->metadata().Text("general.architecture").value(), "llama");
  EXPECT_EQ(index->metadata().Strings("tokenizer.ggml.tokens")->size(), 49152u);
  const ParameterEntry* entry = index->Find("token_embd.weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->dtype, tensor::DType::kQ8_0);
  EXPECT_EQ(entry->shape, (tensor::Shape{49152, 576}));
}

}  // namespace
}  // namespace tessera::formats
