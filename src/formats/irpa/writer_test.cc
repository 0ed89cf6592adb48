// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "formats/irpa/archive.h"
#include "formats/irpa/dataset.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/reader.h"
#include "support/fixtures.h"

namespace tessera::formats::irpa {
namespace {

using testing::ReadAll;
using testing::ReadJson;
using testing::Shared;
using testing::TempDir;

WriteEntry Data(std::string name, uint64_t bytes) {
  return {std::move(name), "", bytes, {}};
}

WriteEntry SplatOf(std::string name, uint64_t bytes, std::vector<uint8_t> pattern) {
  Splat splat;
  std::memcpy(splat.pattern.data(), pattern.data(), pattern.size());
  splat.pattern_bytes = static_cast<uint8_t>(pattern.size());
  return {std::move(name), "", bytes, splat};
}

// Writes the entries, with `data` for each DATA entry in order, and returns the file's bytes.
std::string Written(const std::vector<WriteEntry>& entries, const std::vector<std::string>& data,
                    const WriteOptions& options = {}) {
  TempDir temp;
  const auto path = temp.path() / "out.irpa";
  auto writer = ArchiveWriter::Create(path, entries, options);
  EXPECT_TRUE(writer.has_value()) << StatusOf(writer).ToString();
  for (const std::string& piece : data) {
    const Status status = (*writer)->Append(AsBytes(piece));
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  const Status finished = (*writer)->Finish();
  EXPECT_TRUE(finished.ok()) << finished.ToString();
  const std::string bytes = ReadAll(path);
  EXPECT_EQ(bytes.size(), (*writer)->file_bytes());
  return bytes;
}

// The same archive again, from what the reader says about it.
std::string Rewritten(const std::string& file, uint64_t alignment) {
  const auto archive = ReadArchive(AsBytes(file));
  EXPECT_TRUE(archive.has_value());
  std::vector<WriteEntry> entries;
  std::vector<std::string> data;
  for (const Entry& raw : archive->entries) {
    WriteEntry entry{std::string(raw.name), std::string(raw.metadata), raw.length, {}};
    if (raw.type == EntryType::kSplat) {
      entry.splat = raw.splat;
    } else {
      data.push_back(file.substr(raw.data_offset, raw.length));
    }
    entries.push_back(std::move(entry));
  }
  return Written(entries, data, {alignment});
}

TEST(IrpaWriter, ReproducesEveryArchiveByteForByte) {
  size_t count = 0;
  for (const char* folder : {"samples/shark/irpa/", "samples/shark/irpa_sharktank/"}) {
    const json::Value all = ReadJson(Shared(std::string(folder) + "expected.json"));
    for (const auto& [key, value] : all.as_object()) {
      const std::string name(std::string_view{key});
      if (value.as_object().contains("iree_dump_parameters_error")) continue;
      const uint64_t alignment = name.find("align4096") != std::string::npos ? 4096
                                 : name.find("align1.") != std::string::npos ? 1
                                                                             : 64;
      const std::string file = ReadAll(Shared(folder + name));
      EXPECT_TRUE(Rewritten(file, alignment) == file) << name;
      ++count;
    }
  }
  EXPECT_GE(count, 23u);
}

TEST(IrpaWriter, SplatsFirstGivesTheOrderOfCreate) {
  // --splat=key0=1xf32=100 --data=key2=4xi8=3 --splat=key1=2xf32=200 --data=key3=8xi8=5
  std::vector<WriteEntry> entries = {SplatOf("key0", 4, {0, 0, 0xc8, 0x42}), Data("key2", 4),
                                     SplatOf("key1", 8, {0, 0, 0x48, 0x43}), Data("key3", 8)};
  SplatsFirst(entries);
  EXPECT_EQ(entries[1].name, "key1");
  EXPECT_TRUE(Written(entries, {"\3\3\3\3", "\5\5\5\5\5\5\5\5"}) ==
              ReadAll(Shared("samples/shark/irpa/cli_mixed.irpa")));
  EXPECT_TRUE(Written({}, {}) == ReadAll(Shared("samples/shark/irpa/cli_empty.irpa")));
}

TEST(IrpaWriter, DataMayComeInPieces) {
  const std::vector<WriteEntry> entries = {Data("a", 5), Data("empty", 0), Data("b", 3)};
  const std::string whole = Written(entries, {"12345", "abc"});
  EXPECT_TRUE(Written(entries, {"1", "234", "", "5", "ab", "c"}) == whole);
  const auto index = Parse(AsBytes(whole), "whole");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(AsText(index->View(*index->Find("a")).bytes), "12345");
  EXPECT_EQ(AsText(index->View(*index->Find("b")).bytes), "abc");
  EXPECT_EQ(index->View(*index->Find("empty")).bytes.size(), 0u);
}

TEST(IrpaWriter, BlobsOf4096AlignedFilesStartOnPages) {
  const std::string bytes = Written({Data("a", 1), SplatOf("s", 2, {1}), Data("b", 5000)},
                                    {"x", std::string(5000, 'y')}, {4096});
  const auto index = Parse(AsBytes(bytes), "x");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->Find("a")->offset % 4096, 0u);
  EXPECT_EQ(index->Find("b")->offset % 4096, 0u);
  EXPECT_EQ(bytes.size() % 4096, 0u);
}

TEST(IrpaWriter, BytesMustFitTheirEntries) {
  TempDir temp;
  const std::vector<WriteEntry> entries = {Data("a", 3), Data("b", 1)};
  auto writer = ArchiveWriter::Create(temp.path() / "x.irpa", entries, {});
  ASSERT_TRUE(writer.has_value());
  EXPECT_EQ((*writer)->Append(AsBytes("1234")).code(), Code::kInvalidArgument);
  EXPECT_TRUE((*writer)->Append(AsBytes("12")).ok());
  EXPECT_EQ((*writer)->Append(AsBytes("34")).code(), Code::kInvalidArgument);
  const Status early = (*writer)->Finish();
  EXPECT_EQ(early.code(), Code::kFailedPrecondition);
  EXPECT_EQ(early.message(), "entry a has 2 of its 3 bytes");
  EXPECT_TRUE((*writer)->Append(AsBytes("3")).ok());
  EXPECT_TRUE((*writer)->Append(AsBytes("b")).ok());
  EXPECT_EQ((*writer)->Append(AsBytes("c")).code(), Code::kInvalidArgument);
  EXPECT_TRUE((*writer)->Finish().ok());
}

TEST(IrpaWriter, BadEntriesAreRefused) {
  const auto code = [](const std::vector<WriteEntry>& entries, uint64_t alignment = 64) {
    return StatusOf(PlanArchive(entries, {alignment})).code();
  };
  EXPECT_EQ(code({}, 4096), Code::kOk);
  EXPECT_EQ(code({}, 8192), Code::kInvalidArgument);
  EXPECT_EQ(code({}, 48), Code::kInvalidArgument);
  EXPECT_EQ(code({}, 0), Code::kInvalidArgument);
  EXPECT_EQ(code({SplatOf("s", 9, {1, 2})}), Code::kInvalidArgument);
  EXPECT_EQ(code({SplatOf("s", 9, {1, 2, 3})}), Code::kInvalidArgument);
  EXPECT_EQ(code({Data("a", 1ull << 63), Data("b", 1ull << 63)}), Code::kInvalidArgument);
}

TEST(IrpaWriter, NewerDatasetKeysAreReadBack) {
  const std::string properties = R"({"AMD_SHARK_DATASET_VERSION": 1, "x": 2})";
  const std::string tensors =
      R"({"t": {"type_name": "PrimitiveTensor", "raw_tensors": {"": "t"}}})";
  const DatasetKeys& keys = Keys(KeyGeneration::kAmdShark);
  const std::string bytes = Written({Data(std::string(keys.properties), properties.size()),
                                     Data(std::string(keys.inference_tensors), tensors.size())},
                                    {properties, tensors});
  const auto index = Parse(AsBytes(bytes), "x");
  ASSERT_TRUE(index.has_value());
  const auto dataset = ReadDataset(*index);
  ASSERT_TRUE(dataset.has_value()) << dataset.error().ToString();
  EXPECT_EQ(dataset->generation, KeyGeneration::kAmdShark);
  EXPECT_EQ(json::NeedInt(dataset->properties, "x").value(), 2);
}

// Damage to one archive, byte by byte; `expected` must be in the message.
struct Damage {
  const char* what;
  std::function<void(std::string&)> apply;
  const char* expected;
};

template <class T>
std::function<void(std::string&)> Put(size_t offset, T value) {
  return [=](std::string& file) { std::memcpy(file.data() + offset, &value, sizeof(value)); };
}

TEST(IrpaWriter, DamagedArchivesAreRefusedWithThePlace) {
  // One splat at 0x60, one DATA entry at 0xc0; names "s" and "d".
  const std::string good = Written({SplatOf("s", 8, {1, 2}), Data("d", 4)}, {"data"});
  ASSERT_TRUE(Parse(AsBytes(good), "x").has_value());
  constexpr size_t kSplatAt = 0x60;
  constexpr size_t kDataAt = 0xc0;
  const std::vector<Damage> damages = {
      {"empty", [](std::string& f) { f.clear(); }, "magic: needs 4 bytes"},
      {"cut header", [](std::string& f) { f.resize(87); }, "has 87 bytes"},
      {"magic", Put(0, 'X'), "magic is"},
      {"major", Put(4, uint16_t{1}), "version is 1.0"},
      {"minor", Put(6, uint16_t{1}), "version is 0.1"},
      {"header size", Put(8, uint64_t{87}), "header size is 87"},
      {"linked", Put(16, uint64_t{4096}), "linked archives"},
      {"flags", Put(24, uint64_t{1}), "flags are 0x1"},
      {"count", Put(32, ~uint64_t{0}), "more than the limit"},
      {"count fits no table", Put(32, uint64_t{100}), "at least 60 each"},
      {"one too many", Put(32, uint64_t{3}), "entry segment"},
      {"table outside", Put(40, uint64_t{1} << 40), "entry segment is at"},
      {"metadata wraps", Put(64, ~uint64_t{0}), "metadata segment is at"},
      {"storage outside", Put(80, uint64_t{1} << 20), "storage segment is at"},
      {"entry type", Put(kSplatAt + 8, uint32_t{7}), "type is 7"},
      {"entry size small", Put(kSplatAt, uint64_t{84}), "expected at least 85"},
      {"entry size wraps", Put(kSplatAt, ~uint64_t{0}), "entry size is"},
      {"entry flags", Put(kSplatAt + 12, uint64_t{2}), "flags are 0x2"},
      {"name outside", Put(kSplatAt + 20, uint64_t{99}), "name is at 99"},
      {"name wraps", Put(kSplatAt + 28, ~uint64_t{0}), "name is at"},
      {"pattern", Put(kSplatAt + 84, uint8_t{3}), "pattern length is 3"},
      {"splat length", Put(kSplatAt + 60, uint64_t{7}), "no multiple"},
      {"data outside", Put(kDataAt + 60, uint64_t{1}), "storage is at 1"},
      {"data wraps", Put(kDataAt + 68, ~uint64_t{0}), "storage is at"},
  };
  for (const Damage& damage : damages) {
    std::string file = good;
    damage.apply(file);
    const auto index = Parse(AsBytes(file), "folder/x.irpa");
    ASSERT_FALSE(index.has_value()) << damage.what;
    const std::string text = index.error().ToString();
    EXPECT_NE(text.find("folder/x.irpa"), std::string::npos) << text;
    EXPECT_NE(text.find(damage.expected), std::string::npos) << damage.what << ": " << text;
  }
}

TEST(IrpaWriter, SkipEntriesAreLeftOut) {
  std::string file = Written({Data("a", 1), Data("b", 1)}, {"x", "y"});
  Put(0x60 + 8, uint32_t{0})(file);
  const auto index = Parse(AsBytes(file), "x");
  ASSERT_TRUE(index.has_value()) << index.error().ToString();
  ASSERT_EQ(index->entries().size(), 1u);
  EXPECT_EQ(index->entries()[0].name, "b");
}

TEST(IrpaWriter, ExternalEntriesAreRefusedByName) {
  // A splat made into an EXTERNAL entry: its 85 bytes grow into the padding after it.
  std::string file = Written({SplatOf("weights", 8, {1}), Data("d", 1)}, {"x"});
  Put(0x60, uint64_t{92})(file);
  Put(0x60 + 8, uint32_t{3})(file);
  const auto index = Parse(AsBytes(file), "x");
  ASSERT_FALSE(index.has_value());
  EXPECT_EQ(index.error().code(), Code::kUnimplemented);
  EXPECT_NE(index.error().ToString().find("weights is EXTERNAL"), std::string::npos);
}

TEST(IrpaWriter, DTypeAndShapeMustGiveTheLength) {
  const auto metadata =
      MakeEntryMetadata(MetadataStyle::kPytorch, {tensor::DType::kF16, {2, 3}}).value();
  WriteEntry entry = Data("t", 11);
  entry.metadata = metadata;
  const std::string file = Written({entry}, {"01234567890"});
  const auto index = Parse(AsBytes(file), "x");
  ASSERT_FALSE(index.has_value());
  EXPECT_NE(index.error().ToString().find("[2,3] of F16, 12 bytes, but the entry has 11"),
            std::string::npos)
      << index.error().ToString();
}

}  // namespace
}  // namespace tessera::formats::irpa
