// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/writer.h"

#include <gtest/gtest.h>

#include "formats/open.h"
#include "formats/safetensors/reader.h"
#include "formats/safetensors/sharded.h"
#include "support/fixtures.h"

namespace tessera::formats::safetensors {
namespace {

using testing::ReadAll;
using testing::Shared;
using testing::TempDir;

WriteTensor Tensor(std::string name, ByteSpan bytes) {
  return {std::move(name), {tensor::DType::kU8, {static_cast<int64_t>(bytes.size())}, bytes}};
}

TEST(SafetensorsWriter, RewritesTheReferenceLibrarysFileByteForByte) {
  const std::string file = ReadAll(Shared("fixtures/tiny_llama/hf/model.safetensors"));
  const auto index = Parse(AsBytes(file), "x");
  ASSERT_TRUE(index.has_value());
  TextPairs metadata;
  for (const auto& [key, value] : index->metadata().items())
    metadata.emplace_back(key, std::get<std::string>(value));
  std::vector<WriteTensor> tensors;
  for (const ParameterEntry& entry : index->entries())
    tensors.push_back({entry.name, index->View(entry)});
  const auto again = Make(metadata, tensors);
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_TRUE(*again == file);
  TempDir temp;
  ASSERT_TRUE(Write(temp.path() / "x.safetensors", metadata, tensors).ok());
  EXPECT_TRUE(ReadAll(temp.path() / "x.safetensors") == file);
}

TEST(SafetensorsWriter, OddTensorsAreRefused) {
  const std::string bytes(32, 'x');
  const auto code = [](std::vector<WriteTensor> tensors) {
    return StatusOf(Make({}, tensors)).code();
  };
  EXPECT_EQ(code({Tensor("a", AsBytes(bytes)), Tensor("a", AsBytes(bytes))}),
            Code::kInvalidArgument);
  EXPECT_EQ(code({{"q", {tensor::DType::kQ8_0, {32}, AsBytes(bytes)}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({{"f", {tensor::DType::kF32, {9}, AsBytes(bytes)}}}), Code::kInvalidArgument);
}

// Two shards with one tensor each and an index file with these rows.
class Shards {
 public:
  explicit Shards(const TextPairs& rows) {
    WriteShard("s1.safetensors", "a");
    WriteShard("s2.safetensors", "b");
    EXPECT_TRUE(WriteFileAtomic(index_path(), MakeShardIndex(rows, 2)).ok());
  }
  std::filesystem::path index_path() const { return temp_.path() / "model.safetensors.index.json"; }
  Status Open() const { return StatusOf(formats::Open(index_path())); }
  const std::filesystem::path& folder() const { return temp_.path(); }

 private:
  void WriteShard(const char* file, const char* name) {
    const std::vector<WriteTensor> tensors = {Tensor(name, AsBytes("x"))};
    EXPECT_TRUE(Write(temp_.path() / file, {}, tensors).ok());
  }
  TempDir temp_;
};

TEST(Sharded, MapAndShardsMustAgreeBothWays) {
  EXPECT_TRUE(Shards({{"a", "s1.safetensors"}, {"b", "s2.safetensors"}}).Open().ok());
  const auto expect = [](const TextPairs& rows, Code code, std::string_view text) {
    const Status status = Shards(rows).Open();
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.ToString().find(text), std::string::npos) << status.ToString();
  };
  expect({{"a", "s1.safetensors"}, {"b", "s1.safetensors"}}, Code::kDataLoss,
         "b is in s1.safetensors, but no shard holds it");
  expect({{"a", "s2.safetensors"}, {"b", "s1.safetensors"}}, Code::kDataLoss,
         "a is in s2.safetensors, but it is in s1.safetensors");
  expect({{"a", "s1.safetensors"}, {"b", "s2.safetensors"}, {"c", "s2.safetensors"}},
         Code::kDataLoss, "c is in s2.safetensors, but no shard holds it");
  expect({{"a", "s1.safetensors"}, {"b", "gone.safetensors"}}, Code::kNotFound, "gone.safetensors");
}

TEST(Sharded, TensorsWithoutARowAreRefused) {
  const TextPairs rows = {{"a", "s1.safetensors"}};
  const Shards shards(rows);
  EXPECT_TRUE(shards.Open().ok());  // s2 is not named, so it is not read.
  const std::vector<WriteTensor> tensors = {Tensor("a", AsBytes("x")),
                                            Tensor("extra", AsBytes("y"))};
  ASSERT_TRUE(Write(shards.folder() / "s1.safetensors", {}, tensors).ok());
  const Status status = shards.Open();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_NE(status.ToString().find("holds tensor extra, which weight_map does not name"),
            std::string::npos);
}

TEST(Sharded, AnIndexCannotReachOutsideItsFolder) {
  for (const char* name : {"../x.safetensors", "/etc/passwd", "a/b", "..", ".", "", "a\\b"}) {
    const std::string text = MakeShardIndex({{"a", name}}, 1);
    EXPECT_EQ(StatusOf(ParseShardMap(text, "index")).code(), Code::kInvalidArgument) << name;
  }
  EXPECT_EQ(StatusOf(ParseShardMap("[]", "index")).code(), Code::kInvalidArgument);
  EXPECT_EQ(StatusOf(ParseShardMap("{}", "index")).code(), Code::kInvalidArgument);
  EXPECT_EQ(StatusOf(ParseShardMap(R"({"weight_map":{}})", "index")).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(StatusOf(ParseShardMap(R"({"weight_map":{"a":1}})", "index")).code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace tessera::formats::safetensors
