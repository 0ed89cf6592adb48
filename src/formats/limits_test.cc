// SPDX-License-Identifier: Apache-2.0
//
// Every limit of limits.h at n - 1, n and n + 1. Counts are tried on files too short for them:
// within the limit the complaint is about missing bytes, beyond it about the limit.
#include "formats/limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "formats/gguf/metadata_writer.h"
#include "formats/gguf/reader.h"
#include "formats/gguf/writer.h"
#include "formats/irpa/dataset.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/reader.h"
#include "formats/irpa/writer.h"
#include "formats/open.h"
#include "formats/safetensors/reader.h"
#include "formats/safetensors/sharded.h"
#include "formats/safetensors/writer.h"
#include "support/fixtures.h"

namespace tessera::formats {
namespace {

constexpr float kOne = 1.0f;

tensor::TensorView OneFloat(int rank) {
  return {tensor::DType::kF32, tensor::Shape(std::vector<int64_t>(static_cast<size_t>(rank), 1)),
          std::as_bytes(std::span(&kOne, 1))};
}

Code GgufCode(std::string_view file) {
  return StatusOf(gguf::Parse(AsBytes(file), "x")).code();
}

Code SafetensorsCode(std::string_view file) {
  return StatusOf(safetensors::Parse(AsBytes(file), "x")).code();
}

// A GGUF file of one pair whose bytes follow its key.
std::string GgufWithPair(std::string_view key, std::string_view type_and_value) {
  ByteWriter out;
  out.Write(gguf::kMagic);
  out.Write(uint32_t{3});
  out.Write(uint64_t{0});
  out.Write(uint64_t{1});
  gguf::WriteString(out, key);
  out.WriteText(type_and_value);
  return std::move(out).Take();
}

std::string GgufCounts(uint64_t tensors, uint64_t pairs) {
  ByteWriter out;
  out.Write(gguf::kMagic);
  out.Write(uint32_t{3});
  out.Write(tensors);
  out.Write(pairs);
  return std::move(out).Take();
}

TEST(Limits, TensorNameBytes) {
  const auto codes = [](uint64_t size) {
    const std::string name(size, 'n');
    const std::vector<gguf::WriteTensor> gguf_tensors = {{name, OneFloat(1)}};
    const std::vector<safetensors::WriteTensor> st_tensors = {{name, OneFloat(1)}};
    const std::vector<irpa::WriteEntry> entries = {{name, "", 0, {}}};
    const std::string head = irpa::PlanArchive(entries, {}).value().head + std::string(4096, '\0');
    return std::vector<Code>{GgufCode(gguf::Make({}, gguf_tensors).value()),
                             SafetensorsCode(safetensors::Make({}, st_tensors).value()),
                             StatusOf(irpa::Parse(AsBytes(head), "x")).code()};
  };
  const std::vector<Code> fine(3, Code::kOk);
  EXPECT_EQ(codes(kMaxTensorNameBytes - 1), fine);
  EXPECT_EQ(codes(kMaxTensorNameBytes), fine);
  EXPECT_EQ(codes(kMaxTensorNameBytes + 1), std::vector<Code>(3, Code::kResourceExhausted));
}

TEST(Limits, Tensors) {
  EXPECT_EQ(GgufCode(GgufCounts(kMaxTensors - 1, 0)), Code::kDataLoss);
  EXPECT_EQ(GgufCode(GgufCounts(kMaxTensors, 0)), Code::kDataLoss);
  EXPECT_EQ(GgufCode(GgufCounts(kMaxTensors + 1, 0)), Code::kResourceExhausted);
  std::string archive = irpa::PlanArchive({}, {}).value().head;
  const auto irpa_code = [&](uint64_t count) {
    std::memcpy(archive.data() + 32, &count, sizeof(count));
    return StatusOf(irpa::Parse(AsBytes(archive), "x")).code();
  };
  EXPECT_EQ(irpa_code(kMaxTensors - 1), Code::kDataLoss);
  EXPECT_EQ(irpa_code(kMaxTensors), Code::kDataLoss);
  EXPECT_EQ(irpa_code(kMaxTensors + 1), Code::kResourceExhausted);
}

TEST(Limits, Rank) {
  const auto code = [](int rank) {
    const std::vector<safetensors::WriteTensor> tensors = {{"a", OneFloat(rank)}};
    const auto metadata = irpa::MakeEntryMetadata(irpa::MetadataStyle::kPytorch,
                                                  {tensor::DType::kF32, OneFloat(rank).shape});
    EXPECT_EQ(StatusOf(irpa::ParseEntryMetadata(*metadata)).ok(), rank <= kMaxRank);
    return SafetensorsCode(safetensors::Make({}, tensors).value());
  };
  EXPECT_EQ(code(kMaxRank - 1), Code::kOk);
  EXPECT_EQ(code(kMaxRank), Code::kOk);
  EXPECT_EQ(code(kMaxRank + 1), Code::kInvalidArgument);
}

TEST(Limits, GgufDims) {
  const auto file = [](int rank) {
    const std::vector<gguf::WriteTensor> tensors = {{"a", OneFloat(rank)}};
    return gguf::Make({}, tensors);
  };
  EXPECT_EQ(GgufCode(file(kMaxGgufDims - 1).value()), Code::kOk);
  std::string at_limit = file(kMaxGgufDims).value();
  EXPECT_EQ(GgufCode(at_limit), Code::kOk);
  EXPECT_FALSE(file(kMaxGgufDims + 1).has_value());
  // The rank follows header and name: 24 + 8 + 1.
  const uint32_t rank = kMaxGgufDims + 1;
  std::memcpy(at_limit.data() + 33, &rank, sizeof(rank));
  EXPECT_EQ(GgufCode(at_limit), Code::kInvalidArgument);
}

TEST(Limits, GgufKeyBytes) {
  const auto code = [](uint64_t size) {
    return GgufCode(GgufWithPair(std::string(size, 'k'), std::string_view("\7\0\0\0\1", 5)));
  };
  EXPECT_EQ(code(kMaxGgufKeyBytes - 1), Code::kOk);
  EXPECT_EQ(code(kMaxGgufKeyBytes), Code::kOk);
  EXPECT_EQ(code(kMaxGgufKeyBytes + 1), Code::kResourceExhausted);
}

TEST(Limits, GgufMetadata) {
  EXPECT_EQ(GgufCode(GgufCounts(0, kMaxGgufMetadata - 1)), Code::kDataLoss);
  EXPECT_EQ(GgufCode(GgufCounts(0, kMaxGgufMetadata)), Code::kDataLoss);
  EXPECT_EQ(GgufCode(GgufCounts(0, kMaxGgufMetadata + 1)), Code::kResourceExhausted);
}

TEST(Limits, GgufArrayDepth) {
  const auto code = [](int depth) {
    MetadataValue value = std::vector<uint8_t>{1, 2};
    for (int i = 1; i < depth; ++i) value = std::vector<NestedArray>{NestedArray{std::move(value)}};
    Metadata metadata;
    EXPECT_TRUE(metadata.Add("k", std::move(value)).ok());
    return GgufCode(gguf::Make(metadata, {}).value());
  };
  EXPECT_EQ(code(kMaxGgufArrayDepth - 1), Code::kOk);
  EXPECT_EQ(code(kMaxGgufArrayDepth), Code::kOk);
  EXPECT_EQ(code(kMaxGgufArrayDepth + 1), Code::kResourceExhausted);
}

TEST(Limits, GgufAlignment) {
  const auto code = [](uint64_t alignment) {
    ByteWriter value;
    value.Write(uint32_t{4});
    value.Write(static_cast<uint32_t>(alignment));
    return GgufCode(GgufWithPair("general.alignment", value.bytes()));
  };
  EXPECT_EQ(code(kMaxGgufAlignment / 2), Code::kOk);
  EXPECT_EQ(code(kMaxGgufAlignment - 1), Code::kInvalidArgument);  // No power of two.
  EXPECT_EQ(code(kMaxGgufAlignment), Code::kOk);
  EXPECT_EQ(code(kMaxGgufAlignment + 1), Code::kInvalidArgument);
  EXPECT_EQ(code(kMaxGgufAlignment * 2), Code::kInvalidArgument);
}

TEST(Limits, GgufSplits) {
  testing::TempDir temp;
  const auto code = [&](uint64_t count) {
    Metadata metadata;
    EXPECT_TRUE(metadata.Add("split.count", static_cast<uint16_t>(count)).ok());
    EXPECT_TRUE(metadata.Add("split.no", uint16_t{0}).ok());
    const auto path = temp.path() / fmt::format("m-00001-of-{:05}.gguf", count);
    EXPECT_TRUE(gguf::Write(path, metadata, {}).ok());
    return StatusOf(Open(path)).code();
  };
  EXPECT_EQ(code(kMaxGgufSplits - 1), Code::kNotFound);  // The second piece.
  EXPECT_EQ(code(kMaxGgufSplits), Code::kNotFound);
  EXPECT_EQ(code(kMaxGgufSplits + 1), Code::kInvalidArgument);
}

TEST(Limits, SafetensorsHeaderBytes) {
  const auto code = [](uint64_t size) {
    std::string file(8 + size, ' ');
    std::memcpy(file.data(), &size, sizeof(size));
    file[8] = '{';
    file[9] = '}';
    return SafetensorsCode(file);
  };
  EXPECT_EQ(code(kMaxSafetensorsHeaderBytes - 1), Code::kOk);
  EXPECT_EQ(code(kMaxSafetensorsHeaderBytes), Code::kOk);
  EXPECT_EQ(code(kMaxSafetensorsHeaderBytes + 1), Code::kResourceExhausted);
}

TEST(Limits, SafetensorsJsonDepth) {
  const auto code = [](uint64_t depth) {
    // An ignored member of a tensor; the header and the tensor are the two outer levels.
    const uint64_t inner = depth - 2;
    const std::string json =
        fmt::format(R"({{"a":{{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":{}{}}}}})",
                    std::string(inner, '['), std::string(inner, ']'));
    std::string file(8, '\0');
    const uint64_t size = json.size();
    std::memcpy(file.data(), &size, sizeof(size));
    return SafetensorsCode(file + json);
  };
  EXPECT_EQ(code(kMaxSafetensorsJsonDepth - 1), Code::kOk);
  EXPECT_EQ(code(kMaxSafetensorsJsonDepth), Code::kOk);
  EXPECT_EQ(code(kMaxSafetensorsJsonDepth + 1), Code::kResourceExhausted);
}

TEST(Limits, SafetensorsIndexBytes) {
  testing::TempDir temp;
  const auto path = temp.path() / "model.safetensors.index.json";
  const auto code = [&](uint64_t size) {
    const std::string text = R"({"weight_map":{"a":"absent"}})";
    std::ofstream(path) << text << std::string(size - text.size(), ' ');
    return StatusOf(Open(path)).code();
  };
  EXPECT_EQ(code(kMaxSafetensorsIndexBytes - 1), Code::kNotFound);  // Read, and its shard is not.
  EXPECT_EQ(code(kMaxSafetensorsIndexBytes), Code::kNotFound);
  EXPECT_EQ(code(kMaxSafetensorsIndexBytes + 1), Code::kResourceExhausted);
}

TEST(Limits, SafetensorsShards) {
  const auto code = [](uint64_t count) {
    safetensors::TextPairs rows;
    for (uint64_t i = 0; i < count; ++i)
      rows.emplace_back(fmt::format("t{}", i), fmt::format("s{}", i));
    return StatusOf(safetensors::ParseShardMap(safetensors::MakeShardIndex(rows, 0), "x")).code();
  };
  EXPECT_EQ(code(kMaxSafetensorsShards - 1), Code::kOk);
  EXPECT_EQ(code(kMaxSafetensorsShards), Code::kOk);
  EXPECT_EQ(code(kMaxSafetensorsShards + 1), Code::kResourceExhausted);
}

TEST(Limits, IrpaMetadataBytes) {
  const auto code = [](uint64_t size) {
    std::string text = R"(PYTORCH:{"type":"Tensor","dtype":"int8","shape":[0]})";
    text.append(size - text.size(), ' ');
    return StatusOf(irpa::ParseEntryMetadata(text)).code();
  };
  EXPECT_EQ(code(kMaxIrpaMetadataBytes - 1), Code::kOk);
  EXPECT_EQ(code(kMaxIrpaMetadataBytes), Code::kOk);
  EXPECT_EQ(code(kMaxIrpaMetadataBytes + 1), Code::kResourceExhausted);
}

TEST(Limits, SplatBytes) {
  const auto code = [](uint64_t size) {
    const std::vector<irpa::WriteEntry> entries = {{"s", "", size, Splat{}}};
    const std::string head = irpa::PlanArchive(entries, {}).value().head;
    const auto index = irpa::Parse(AsBytes(head), "x");
    return StatusOf(index->Materialise(index->entries()[0])).code();
  };
  EXPECT_EQ(code(kMaxSplatBytes - 1), Code::kOk);
  EXPECT_EQ(code(kMaxSplatBytes), Code::kOk);
  EXPECT_EQ(code(kMaxSplatBytes + 1), Code::kResourceExhausted);
}

// An index of a dataset whose blobs hold these texts; it views `storage`.
ParameterIndex DatasetOf(std::string_view properties, std::string_view ranks,
                         std::string& storage) {
  const irpa::DatasetKeys& keys = irpa::Keys(irpa::KeyGeneration::kShark);
  const std::vector<irpa::WriteEntry> entries = {
      {std::string(keys.properties), "", properties.size(), {}},
      {std::string(keys.shard_ranks), "", ranks.size(), {}},
      {std::string(keys.inference_tensors), "", 2, {}}};
  const irpa::ArchivePlan plan = irpa::PlanArchive(entries, {}).value();
  storage = plan.head;
  const std::string_view data[] = {properties, ranks, "{}"};
  for (size_t i = 0; i < entries.size(); ++i) {
    storage.resize(plan.data_offsets[i]);
    storage.append(data[i]);
  }
  return irpa::Parse(AsBytes(storage), "x").value();
}

TEST(Limits, IrpaRanks) {
  const auto code = [](uint64_t count) {
    json::Array ranks;
    for (uint64_t i = 0; i < count; ++i) ranks.emplace_back(i);
    std::string storage;
    return StatusOf(irpa::ReadRanks(DatasetOf("{}", json::Serialize(ranks), storage))).code();
  };
  EXPECT_EQ(code(kMaxIrpaRanks - 1), Code::kOk);
  EXPECT_EQ(code(kMaxIrpaRanks), Code::kOk);
  EXPECT_EQ(code(kMaxIrpaRanks + 1), Code::kResourceExhausted);
}

TEST(Limits, IrpaJsonBytes) {
  const auto code = [](uint64_t size) {
    std::string properties(size, ' ');
    properties[0] = '{';
    properties[1] = '}';
    std::string storage;
    return StatusOf(irpa::ReadDataset(DatasetOf(properties, "[]", storage))).code();
  };
  EXPECT_EQ(code(kMaxIrpaJsonBytes - 1), Code::kOk);
  EXPECT_EQ(code(kMaxIrpaJsonBytes), Code::kOk);
  EXPECT_EQ(code(kMaxIrpaJsonBytes + 1), Code::kResourceExhausted);
}

TEST(Limits, SharedIrpaTextCannotGrowWithoutBound) {
  // Many entries that all name the same long metadata.
  std::vector<irpa::WriteEntry> entries(1000, {"n", "", 0, Splat{}});
  entries[0].metadata = std::string(100'000, 'm');
  std::string head = irpa::PlanArchive(entries, {}).value().head;
  ASSERT_TRUE(irpa::Parse(AsBytes(head), "x").has_value());
  for (size_t i = 1; i < entries.size(); ++i) {
    const uint64_t reference[] = {1, 100'000};
    std::memcpy(head.data() + 96 + 96 * i + 36, reference, sizeof(reference));
  }
  EXPECT_EQ(StatusOf(irpa::Parse(AsBytes(head), "x")).code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace tessera::formats
