// SPDX-License-Identifier: Apache-2.0
#include "formats/describe.h"

#include <gtest/gtest.h>

#include <cstring>

#include "formats/dump.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/reader.h"
#include "formats/irpa/writer.h"
#include "formats/open.h"
#include "formats/printable.h"
#include "support/fixtures.h"
#include "support/golden.h"

namespace tessera::formats {
namespace {

using testing::ReadAll;
using testing::Shared;

// The path differs between machines; the rest is golden.
void ExpectGoldenText(const std::string& relative, const std::string& golden) {
  const auto path = Shared(relative);
  const auto index = Open(path);
  ASSERT_TRUE(index.has_value()) << index.error().ToString();
  const std::string parent = path.parent_path().string() + "/";
  const auto strip = [&](std::string text) {
    for (size_t at; (at = text.find(parent)) != std::string::npos;) text.erase(at, parent.size());
    return text;
  };
  testing::ExpectGolden(strip(DescribeText(*index)), "formats/" + golden + ".txt");
  testing::ExpectGolden(strip(json::SerializePretty(DescribeJson(*index))),
                        "formats/" + golden + ".json");
}

TEST(Describe, ShowsGgufWithAllKindsOfMetadata) {
  ExpectGoldenText("fixtures/gguf/valid/all_kv_types.gguf", "all_kv_types");
}

TEST(Describe, ShowsSafetensors) {
  ExpectGoldenText("fixtures/safetensors/valid/bf16_f16_i64.safetensors", "bf16_f16_i64");
}

TEST(Describe, ShowsIrpaWithSplatsBlobsAndNotes) {
  ExpectGoldenText("samples/shark/irpa/py_metadata_dup.irpa", "py_metadata_dup");
}

TEST(Describe, LongArraysAreAbbreviated) {
  const auto index = Open(Shared("fixtures/tiny_llama/tiny-f16.gguf"));
  ASSERT_TRUE(index.has_value());
  const json::Value json = DescribeJson(*index);
  const json::Value& tokens = json.at("files").at(0).at("metadata").at("tokenizer.ggml.tokens");
  EXPECT_EQ(tokens.at("kind"), "array of text");
  EXPECT_EQ(tokens.at("count").to_number<int>(), 512);
  EXPECT_EQ(tokens.at("first").as_array().size(), DescribeOptions().array_items);
  EXPECT_LT(DescribeText(*index).size(), 20'000u);
}

TEST(Printable, NothingSteersATerminal) {
  EXPECT_EQ(Printable("a\x1b[31m\r\n\t\x7f"), "a\\x1b[31m\\x0d\\n\\t\\x7f");
  EXPECT_EQ(Printable("caf\xc3\xa9 \xe6\x96\x87 \xf0\x9f\xa7\xad"),
            "caf\xc3\xa9 \xe6\x96\x87 \xf0\x9f\xa7\xad");
  EXPECT_EQ(Printable("\xc2\x9b\xff\xc0\x80\xed\xa0\x80"),
            "\\xc2\\x9b\\xff\\xc0\\x80\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("abc\xc3\xa9", 4), "abc... (5 bytes)");
  EXPECT_EQ(Printable("abcd", 4), "abcd");
}

TEST(Printable, Utf8IsMadeValid) {
  EXPECT_EQ(ValidUtf8("ok \xc3\xa9"), "ok \xc3\xa9");
  EXPECT_EQ(ValidUtf8("\xc3"), "\xef\xbf\xbd");
  EXPECT_EQ(ValidUtf8("\xf4\x90\x80\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

std::string Floats(const ParameterIndex& index, std::string_view name) {
  std::string bytes;
  const Status status = DumpFloats(index, *index.Find(name), [&](ByteSpan piece) {
    bytes += AsText(piece);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  return bytes;
}

TEST(Dump, EveryTypeGivesItsExpectedFloats) {
  const auto index = Open(Shared("fixtures/gguf/types.gguf"));
  ASSERT_TRUE(index.has_value());
  const json::Value expected = testing::ReadJson(Shared("fixtures/gguf/types_expected.json"));
  const std::string floats = ReadAll(Shared("fixtures/gguf/types_expected.f32"));
  for (const auto& [name, row] : expected.at("tensors").as_object())
    EXPECT_TRUE(Floats(*index, name) == floats.substr(row.at("f32_offset").to_number<size_t>(),
                                                      row.at("f32_bytes").to_number<size_t>()))
        << std::string_view(name);
}

TEST(Dump, LargeTensorsAndSplatsComeInPieces) {
  // 200,000 elements: three full pieces and a rest.
  constexpr int64_t kElements = 200'000;
  Splat half;
  half.pattern[1] = std::byte{0x3c};  // 1.0 as f16.
  half.pattern_bytes = 2;
  const auto metadata =
      irpa::MakeEntryMetadata(irpa::MetadataStyle::kPytorch, {tensor::DType::kF16, {kElements}});
  const std::vector<irpa::WriteEntry> entries = {{"splat", *metadata, kElements * 2, half},
                                                 {"data", *metadata, kElements * 2, {}}};
  testing::TempDir temp;
  auto writer = irpa::ArchiveWriter::Create(temp.path() / "x.irpa", entries, {});
  ASSERT_TRUE(writer.has_value());
  std::vector<uint16_t> data(kElements, 0x3c00);
  ASSERT_TRUE((*writer)->Append(std::as_bytes(std::span(data))).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto index = Open(temp.path() / "x.irpa");
  ASSERT_TRUE(index.has_value());
  const std::string floats = Floats(*index, "splat");
  const std::vector<float> ones(kElements, 1.0f);
  EXPECT_TRUE(floats == AsText(std::as_bytes(std::span(ones))));
  EXPECT_TRUE(Floats(*index, "data") == floats);
  std::string raw;
  ASSERT_TRUE(DumpBytes(*index, *index->Find("splat"), [&](ByteSpan piece) {
                raw += AsText(piece);
                return Status();
              }).ok());
  EXPECT_TRUE(raw == AsText(std::as_bytes(std::span(data))));
}

TEST(Dump, BlobsAndTypesWithoutFloatsAreRefusedAndErrorsOfTheSinkReturned) {
  const auto index = Open(Shared("samples/shark/irpa/py_tensorv0_all.irpa"));
  ASSERT_TRUE(index.has_value());
  const auto ignore = [](ByteSpan) { return Status(); };
  EXPECT_EQ(DumpFloats(*index, *index->Find("t.complex64"), ignore).code(), Code::kUnimplemented);
  const auto fail = [](ByteSpan) { return Unavailable("closed pipe"); };
  EXPECT_EQ(DumpFloats(*index, *index->Find("t.int8"), fail).message(), "closed pipe");
  const auto blobs = Open(Shared("samples/shark/irpa/cli_mixed.irpa"));
  ASSERT_TRUE(blobs.has_value());
  EXPECT_EQ(DumpFloats(*blobs, *blobs->Find("key0"), ignore).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::formats
