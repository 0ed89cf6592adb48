// SPDX-License-Identifier: Apache-2.0
//
// Blocks to planes and back for every layout; shards joined, stacked and added; what does not fit.
#include "formats/irpa/logical_index.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "formats/irpa/describe_dataset.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/logical_tensor.h"
#include "formats/irpa/plane_blocks.h"
#include "formats/irpa/reader.h"
#include "formats/irpa/writer.h"
#include "support/fixtures.h"
#include "tensor/convert.h"

namespace tessera::formats::irpa {
namespace {

using tensor::DType;
using tensor::Shape;
using ::testing::HasSubstr;

/// An archive in the making.
class Draft {
 public:
  void Add(const std::string& name, DType dtype, const Shape& shape, std::vector<std::byte> bytes) {
    auto metadata = MakeEntryMetadata(MetadataStyle::kPytorch, {dtype, shape});
    ASSERT_TRUE(metadata.has_value()) << name;
    entries_.push_back({name, *std::move(metadata), bytes.size(), std::nullopt});
    contents_.push_back(std::move(bytes));
  }
  void AddText(const std::string& name, std::string_view text) {
    entries_.push_back({name, "", text.size(), std::nullopt});
    contents_.emplace_back(AsBytes(text).begin(), AsBytes(text).end());
  }
  json::Object tensors;  // The description.

  /// Writes, opens, and gives the logical index.
  Result<ParameterIndex> Open(KeyGeneration generation = KeyGeneration::kShark) {
    const DatasetKeys& keys = Keys(generation);
    AddText(std::string(keys.properties), R"({"general.architecture": "llama"})");
    AddText(std::string(keys.inference_tensors), json::Serialize(tensors));
    const std::filesystem::path path = folder_.path() / "x.irpa";
    TESSERA_ASSIGN_OR_RETURN(const auto writer, ArchiveWriter::Create(path, entries_, {}));
    for (const auto& bytes : contents_)
      if (!bytes.empty()) TESSERA_RETURN_IF_ERROR(writer->Append(bytes));
    TESSERA_RETURN_IF_ERROR(writer->Finish());
    TESSERA_ASSIGN_OR_RETURN(auto mapping, MappedFile::Open(path));
    TESSERA_ASSIGN_OR_RETURN(const ParameterIndex index, irpa::Open(std::move(mapping)));
    TESSERA_ASSIGN_OR_RETURN(const Dataset dataset, ReadDataset(index));
    auto logical = OpenLogical(index, dataset, {});
    // What opens can be shown.
    EXPECT_TRUE(!logical.has_value() || DescribeDatasetText(index, dataset).has_value());
    EXPECT_TRUE(!logical.has_value() || DescribeDatasetJson(index, dataset).has_value());
    return logical;
  }

 private:
  testing::TempDir folder_;
  std::vector<WriteEntry> entries_;
  std::vector<std::vector<std::byte>> contents_;
};

/// Random blocks; 16-bit fields at even offsets below 8 are made small floats, so that none is NaN.
std::vector<std::byte> RandomBlocks(DType dtype, uint64_t blocks) {
  std::mt19937 random(17);
  const uint64_t bytes = tensor::Info(dtype).block_bytes;
  std::vector<std::byte> out(blocks * bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  const auto half = [&](uint64_t at) {
    out[at + 1] = static_cast<std::byte>(0x20 | (random() & 0x8f));
  };
  for (uint64_t b = 0; b < blocks; ++b) {
    half(b * bytes + (dtype == DType::kQ6_K ? 208 : 0));
    if (dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ4_K ||
        dtype == DType::kQ5_K)
      half(b * bytes + 2);
  }
  return out;
}

std::vector<float> Floats(DType dtype, ByteSpan bytes, size_t count) {
  std::vector<float> values(count);
  EXPECT_TRUE(tensor::ToFloat(dtype, bytes, values).ok());
  return values;
}

class Planar : public ::testing::TestWithParam<DType> {};

TEST_P(Planar, HoldsEveryNumberOfItsBlocks) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kColumns = 512;
  const DType dtype = GetParam();
  const PlanarFormat* format = PlanarFormatOf(dtype);
  ASSERT_NE(format, nullptr);
  const uint64_t blocks = kRows * kColumns / tensor::Info(dtype).block_elements;
  const std::vector<std::byte> source = RandomBlocks(dtype, blocks);
  Draft draft;
  json::Object raw;
  for (const PlaneFormat& plane : format->planes) {
    const std::string name = fmt::format("w:{}", plane.name);
    std::vector<int64_t> dims = {kRows, static_cast<int64_t>(blocks) / kRows * plane.sub_blocks};
    dims.insert(dims.end(), plane.inner.begin(), plane.inner.end());
    std::vector<std::byte> bytes;
    plane.extract(source.data(), blocks, &bytes);
    EXPECT_EQ(bytes.size(), blocks * plane.bytes_per_block);
    draft.Add(name, plane.dtype, Shape(dims), std::move(bytes));
    raw[plane.name] = name;
  }
  draft.tensors["w"] =
      json::Object{{"type_name", "PlanarQuantizedTensor"},
                   {"raw_tensors", raw},
                   {"shape", json::Array{kRows, kColumns}},
                   {"layout_type", format->layout_type},
                   {"layout_metadata", json::Object{{"signed", format->is_signed == 1}}}};
  if (dtype == DType::kQ5_K || dtype == DType::kQ6_K)
    draft.tensors["w"].get_object()["layout_metadata"] =
        json::Object{{kBlockFormatKey, tensor::Name(dtype)}};
  const auto index = draft.Open();
  ASSERT_TRUE(index.has_value()) << StatusOf(index).ToString();
  const ParameterEntry* entry = index->Find("w");
  ASSERT_NE(entry, nullptr);
  const auto bytes = index->Materialise(*entry);
  ASSERT_TRUE(bytes.has_value()) << StatusOf(bytes).ToString();
  const bool same_format = dtype == DType::kQ8_0 || dtype == DType::kQ4_0 ||
                           dtype == DType::kQ4_1 || dtype == DType::kQ4_K;
  if (dtype == DType::kQ5_K || dtype == DType::kQ6_K) {
    EXPECT_EQ(entry->dtype, dtype);
  }
  if (same_format) {
    EXPECT_EQ(entry->dtype, dtype);
    EXPECT_TRUE(*bytes == source);
  }
  EXPECT_EQ(Floats(entry->dtype, *bytes, kRows * kColumns),
            Floats(dtype, source, kRows * kColumns));
}

INSTANTIATE_TEST_SUITE_P(EveryLayout, Planar,
                         ::testing::Values(DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K,
                                           DType::kQ5_0, DType::kQ5_1, DType::kQ5_K, DType::kQ6_K),
                         [](const auto& param) { return std::string(tensor::Name(param.param)); });

std::vector<std::byte> Bytes(std::initializer_list<float> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

json::Object Shards(std::string_view type, json::Array shape, int64_t dim) {
  json::Object out{{"type_name", type},
                   {"raw_tensors", json::Object{{"0", "w.shard.0"}, {"1", "w.shard.1"}}},
                   {"shard_count", 2},
                   {"shape", std::move(shape)}};
  if (dim >= 0) out["shard_dim"] = dim;
  return out;
}

std::vector<float> ReadAllFloats(const ParameterIndex& index) {
  const ParameterEntry& entry = *index.Find("w");
  return Floats(entry.dtype, index.Materialise(entry).value(),
                static_cast<size_t>(entry.shape.elements()));
}

TEST(LogicalIndex, JoinsStacksAndAddsShards) {
  for (const auto& [type, shape, dim, expected] :
       {std::tuple{kSplitTensor, json::Array{2, 4}, 1, std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8}},
        std::tuple{kSplitTensor, json::Array{4, 2}, 0, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}},
        std::tuple{kUnreducedTensor, json::Array{2, 2}, -1, std::vector<float>{6, 8, 10, 12}}}) {
    for (const KeyGeneration generation : {KeyGeneration::kShark, KeyGeneration::kAmdShark}) {
      Draft draft;
      draft.Add("w.shard.0", DType::kF32, {2, 2}, Bytes({1, 2, 3, 4}));
      draft.Add("w.shard.1", DType::kF32, {2, 2}, Bytes({5, 6, 7, 8}));
      draft.tensors["w"] = Shards(type, shape, dim);
      const auto index = draft.Open(generation);
      ASSERT_TRUE(index.has_value()) << StatusOf(index).ToString();
      EXPECT_EQ(ReadAllFloats(*index), expected);
    }
  }
}

TEST(LogicalIndex, RefusesWhatDoesNotFitByName) {
  const auto open = [](json::Object description) {
    Draft draft;
    draft.Add("w.shard.0", DType::kF32, {2, 2}, Bytes({1, 2, 3, 4}));
    draft.Add("w.shard.1", DType::kF16, {2, 1}, std::vector<std::byte>(4));
    draft.tensors["w"] = std::move(description);
    return StatusOf(draft.Open()).ToString();
  };
  EXPECT_THAT(open(Shards(kSplitTensor, {2, 3}, 1)), HasSubstr("shard 1 is F16, shard 0 F32"));
  EXPECT_THAT(open(Shards(kSplitTensor, {2, 4}, 0)), HasSubstr("is no part of [2,4]"));
  EXPECT_THAT(open(Shards(kSplitTensor, {2, 9}, 2)), HasSubstr("shard_dim 2"));
  // Sums have no part that one shard leaves out, whatever the description says of a dimension.
  for (const int64_t dim : {0, 1})
    EXPECT_THAT(open(Shards(kUnreducedTensor, {4, 3}, dim)), HasSubstr("is no part of [4,3]"));
  EXPECT_THAT(open(Shards("DynamicScaledQuantizer", {2, 2}, -1)),
              HasSubstr("DynamicScaledQuantizer"));
  EXPECT_THAT(open({{"type_name", "PrimitiveTensor"}, {"raw_tensors", json::Object{{"", "x"}}}}),
              HasSubstr("no entry x"));
  EXPECT_THAT(open({{"type_name", "PlanarQuantizedTensor"},
                    {"raw_tensors", json::Object{{"d", "w.shard.0"}}},
                    {"shape", json::Array{2, 64}},
                    {"layout_type", "BlockScaledLayout"}}),
              HasSubstr("has no plane qs"));
  EXPECT_THAT(open({{"type_name", "PlanarQuantizedTensor"},
                    {"raw_tensors", json::Object{{"d", "w.shard.0"}, {"qs", "w.shard.0"}}},
                    {"shape", json::Array{2, 64}},
                    {"layout_type", "FancyLayout"}}),
              HasSubstr("layout FancyLayout"));
}

}  // namespace
}  // namespace tessera::formats::irpa
