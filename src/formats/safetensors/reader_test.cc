// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/reader.h"

#include <gtest/gtest.h>

#include "formats/open.h"
#include "formats/safetensors/sharded.h"
#include "support/fixtures.h"
#include "tensor/convert.h"

namespace tessera::formats {
namespace {

using testing::ReadJson;
using testing::Shared;

TEST(SafetensorsReader, EveryMalformedFixtureIsRefusedByName) {
  const json::Value cases = ReadJson(Shared("fixtures/safetensors/cases.json"));
  size_t count = 0;
  for (const json::Value& value : cases.as_object().at("malformed").as_array()) {
    const json::Object& row = value.as_object();
    const std::string file(std::string_view(row.at("file").as_string()));
    const auto index = Open(Shared("fixtures/safetensors/" + file));
    ASSERT_FALSE(index.has_value()) << file;
    const std::string text = index.error().ToString();
    EXPECT_NE(text.find(file), std::string::npos) << text;
    EXPECT_TRUE(text.find("offset") != std::string::npos ||
                text.find("tensor") != std::string::npos ||
                text.find("header") != std::string::npos)
        << text;
    ++count;
  }
  EXPECT_GE(count, 18u);
}

TEST(SafetensorsReader, EveryValidFixtureReadsAsExpected) {
  const json::Value cases = ReadJson(Shared("fixtures/safetensors/cases.json"));
  for (const json::Value& value : cases.as_object().at("valid").as_array()) {
    const json::Object& row = value.as_object();
    const std::string file(std::string_view(row.at("file").as_string()));
    const auto index = Open(Shared("fixtures/safetensors/" + file));
    ASSERT_TRUE(index.has_value()) << index.error().ToString();
    EXPECT_EQ(index->entries().size(), row.at("expect").as_object().size());
    for (const auto& [name, expected] : row.at("expect").as_object()) {
      const ParameterEntry* entry = index->Find(name);
      ASSERT_NE(entry, nullptr) << file << " " << std::string_view(name);
      std::vector<float> actual(static_cast<size_t>(entry->shape.elements()));
      ASSERT_TRUE(tensor::ToFloat(entry->dtype, index->View(*entry).bytes, actual).ok());
      ASSERT_EQ(actual.size(), expected.as_array().size());
      for (size_t i = 0; i < actual.size(); ++i)
        EXPECT_EQ(actual[i], expected.as_array()[i].to_number<double>());
    }
  }
}

TEST(SafetensorsReader, MetadataIsKept) {
  const auto index = Open(Shared("fixtures/safetensors/valid/basic.safetensors"));
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->metadata().Text("format").value(), "pt");
}

TEST(SafetensorsReader, FormatIsDecidedByContentNotByName) {
  testing::TempDir temp;
  const auto path = temp.path() / "weights.bin";
  std::filesystem::copy_file(Shared("fixtures/safetensors/valid/basic.safetensors"), path);
  EXPECT_TRUE(Open(path).has_value());
  std::filesystem::copy_file(Shared("fixtures/gguf/valid/version_2.gguf"),
                             temp.path() / "odd.safetensors");
  const auto index = Open(temp.path() / "odd.safetensors");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->files()[0].format, Format::kGguf);
}

TEST(Sharded, TinyLlamaEqualsItsSingleFile) {
  const auto single = Open(Shared("fixtures/tiny_llama/hf"));
  ASSERT_TRUE(single.has_value()) << single.error().ToString();
  const auto sharded = Open(Shared("fixtures/tiny_llama/hf_sharded"));
  ASSERT_TRUE(sharded.has_value()) << sharded.error().ToString();
  EXPECT_EQ(sharded->files().size(), 2u);
  ASSERT_EQ(single->entries().size(), sharded->entries().size());
  for (const ParameterEntry& entry : single->entries()) {
    const ParameterEntry* other = sharded->Find(entry.name);
    ASSERT_NE(other, nullptr) << entry.name;
    EXPECT_EQ(entry.shape, other->shape);
    EXPECT_TRUE(AsText(single->View(entry).bytes) == AsText(sharded->View(*other).bytes));
  }
}

}  // namespace
}  // namespace tessera::formats
