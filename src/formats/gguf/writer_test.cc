// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/writer.h"

#include <gtest/gtest.h>

#include "formats/gguf/reader.h"
#include "formats/open.h"
#include "support/fixtures.h"
#include "tensor/quantise.h"

namespace tessera::formats::gguf {
namespace {

using testing::ReadAll;
using testing::Shared;
using testing::TempDir;

std::vector<WriteTensor> TensorsOf(const ParameterIndex& index) {
  std::vector<WriteTensor> tensors;
  for (const ParameterEntry& entry : index.entries())
    tensors.push_back({entry.name, index.View(entry)});
  return tensors;
}

TEST(GgufWriter, RewritesFilesOfTheReferenceWriterByteForByte) {
  for (const char* name : {"fixtures/gguf/types.gguf", "fixtures/tiny_llama/tiny-f16.gguf"}) {
    const std::string file = ReadAll(Shared(name));
    const auto index = Parse(AsBytes(file), name);
    ASSERT_TRUE(index.has_value()) << index.error().ToString();
    const auto again = Make(index->metadata(), TensorsOf(*index));
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(*again == file) << name;
  }
}

TEST(GgufWriter, AllKindsOfMetadataSurvive) {
  const auto index = formats::Open(Shared("fixtures/gguf/valid/all_kv_types.gguf"));
  ASSERT_TRUE(index.has_value());
  const auto file = Make(index->metadata(), TensorsOf(*index), {.version = 2});
  ASSERT_TRUE(file.has_value());
  const auto again = Parse(AsBytes(*file), "again");
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ(again->files()[0].version, 2u);
  EXPECT_EQ(again->metadata().items(), index->metadata().items());
}

TEST(GgufWriter, AlignmentFollowsTheMetadata) {
  const std::vector<float> values(33, 1.0f);
  const tensor::TensorView view{tensor::DType::kF32, {33}, std::as_bytes(std::span(values))};
  Metadata metadata;
  ASSERT_TRUE(metadata.Add("general.alignment", uint32_t{256}).ok());
  const std::vector<WriteTensor> tensors = {{"a", view}, {"b", view}};
  const auto file = Make(metadata, tensors);
  ASSERT_TRUE(file.has_value());
  const auto index = Parse(AsBytes(*file), "x");
  ASSERT_TRUE(index.has_value()) << index.error().ToString();
  EXPECT_EQ(index->Find("a")->offset % 256, 0u);
  EXPECT_EQ(index->Find("b")->offset, index->Find("a")->offset + 256);
  TempDir temp;
  ASSERT_TRUE(Write(temp.path() / "x.gguf", metadata, tensors).ok());
  EXPECT_TRUE(ReadAll(temp.path() / "x.gguf") == *file);
}

TEST(GgufWriter, WhatTheReaderWouldRefuseIsRefused) {
  const std::vector<float> values(4);
  const ByteSpan bytes = std::as_bytes(std::span(values));
  const auto code = [&](tensor::DType dtype, tensor::Shape shape) {
    const std::vector<WriteTensor> tensors = {{"a", {dtype, std::move(shape), bytes}}};
    return StatusOf(Make({}, tensors)).code();
  };
  EXPECT_EQ(code(tensor::DType::kF32, {4}), Code::kOk);
  EXPECT_EQ(code(tensor::DType::kF32, {5}), Code::kInvalidArgument);
  EXPECT_EQ(code(tensor::DType::kU32, {4}), Code::kInvalidArgument);
  EXPECT_EQ(code(tensor::DType::kF32, {1, 1, 1, 1, 4}), Code::kInvalidArgument);
  EXPECT_EQ(code(tensor::DType::kQ8_0, {16}), Code::kInvalidArgument);
  Metadata odd;
  ASSERT_TRUE(odd.Add("general.alignment", uint32_t{24}).ok());
  EXPECT_EQ(StatusOf(Make(odd, {})).code(), Code::kInvalidArgument);
}

// A file of one tensor and the keys of piece `number` of `count`.
void WritePiece(const std::filesystem::path& path, const std::string& tensor, uint16_t number,
                uint16_t count, int32_t tensors_of_all) {
  const float value = number;
  Metadata metadata;
  ASSERT_TRUE(metadata.Add("split.no", number).ok());
  ASSERT_TRUE(metadata.Add("split.count", count).ok());
  ASSERT_TRUE(metadata.Add("split.tensors.count", tensors_of_all).ok());
  const std::vector<WriteTensor> tensors = {
      {tensor, {tensor::DType::kF32, {1}, std::as_bytes(std::span(&value, 1))}}};
  ASSERT_TRUE(Write(path, metadata, tensors).ok());
}

TEST(GgufSplit, AnyPieceBringsInTheOthersInOrder) {
  TempDir temp;
  WritePiece(temp.path() / "m-00001-of-00002.gguf", "a", 0, 2, 2);
  WritePiece(temp.path() / "m-00002-of-00002.gguf", "b", 1, 2, 2);
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", ""}) {
    const auto index = formats::Open(temp.path() / name);
    ASSERT_TRUE(index.has_value()) << index.error().ToString();
    ASSERT_EQ(index->entries().size(), 2u);
    EXPECT_EQ(index->entries()[0].name, "a");
    EXPECT_EQ(index->metadata().Int("split.no").value(), 0);
  }
}

TEST(GgufSplit, DisagreeingPiecesAreRefused) {
  TempDir temp;
  const auto first = temp.path() / "m-00001-of-00002.gguf";
  const auto second = temp.path() / "m-00002-of-00002.gguf";
  const auto error = [&] { return StatusOf(formats::Open(first)); };
  WritePiece(first, "a", 0, 2, 2);
  EXPECT_EQ(error().code(), Code::kNotFound);
  WritePiece(second, "b", 0, 2, 2);
  EXPECT_EQ(error().code(), Code::kInvalidArgument);
  WritePiece(second, "a", 1, 2, 2);
  EXPECT_EQ(error().code(), Code::kAlreadyExists);
  WritePiece(second, "b", 1, 2, 3);
  EXPECT_TRUE(error().ok());  // The first piece's count is the one that counts.
  WritePiece(first, "a", 0, 2, 3);
  EXPECT_EQ(error().code(), Code::kDataLoss);
  WritePiece(temp.path() / "renamed.gguf", "a", 0, 2, 2);
  const Status renamed = StatusOf(formats::Open(temp.path() / "renamed.gguf"));
  EXPECT_EQ(renamed.code(), Code::kInvalidArgument);
  EXPECT_NE(renamed.ToString().find("-00001-of-00002.gguf"), std::string::npos);
}

}  // namespace
}  // namespace tessera::formats::gguf
