// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/dataset.h"

#include <fmt/format.h>

#include "formats/irpa/python_json.h"
#include "formats/irpa/reader.h"
#include "formats/limits.h"

namespace tessera::formats::irpa {
namespace {

constexpr DatasetKeys kSharkKeys = {"__SHARK_DATASET__", "__SHARK_INFERENCE_TENSORS__",
                                    "__SHARK_SHARD_RANKS__", "SHARK_DATASET_VERSION"};
constexpr DatasetKeys kAmdSharkKeys = {"__AMD_SHARK_DATASET__", "__AMD_SHARK_INFERENCE_TENSORS__",
                                       "__AMD_SHARK_SHARD_RANKS__", "AMD_SHARK_DATASET_VERSION"};

std::optional<KeyGeneration> FindGeneration(const ParameterIndex& index) {
  for (const KeyGeneration generation : {KeyGeneration::kShark, KeyGeneration::kAmdShark})
    if (index.Find(Keys(generation).properties) != nullptr) return generation;
  return std::nullopt;
}

Result<json::Value> ParseBlob(const ParameterIndex& index, const ParameterEntry& entry) {
  if (entry.splat.has_value())
    return Fail(InvalidArgument(fmt::format("{} is a splat, expected JSON", entry.name)));
  json::Limits limits;
  limits.max_bytes = kMaxIrpaJsonBytes;
  return json::Parse(AsText(index.View(entry).bytes), limits, entry.name);
}

Result<json::Object> NeedObject(const ParameterIndex& index, std::string_view key) {
  const ParameterEntry* entry = index.Find(key);
  if (entry == nullptr) return Fail(InvalidArgument(fmt::format("the dataset has no {}", key)));
  TESSERA_ASSIGN_OR_RETURN(json::Value value, ParseBlob(index, *entry));
  if (!value.is_object())
    return Fail(
        InvalidArgument(fmt::format("{} is {}, expected an object", key, json::KindName(value))));
  return std::move(value.as_object());
}

Result<std::vector<int64_t>> ReadRanksOf(const ParameterIndex& index, KeyGeneration generation) {
  std::vector<int64_t> ranks;
  const std::string_view key = Keys(generation).shard_ranks;
  const ParameterEntry* entry = index.Find(key);
  if (entry == nullptr) return ranks;
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, ParseBlob(index, *entry));
  if (!value.is_array())
    return Fail(
        InvalidArgument(fmt::format("{} is {}, expected an array", key, json::KindName(value))));
  if (value.as_array().size() > kMaxIrpaRanks)
    return Fail(ResourceExhausted(fmt::format("{} has {} ranks, more than the limit of {}", key,
                                              value.as_array().size(), kMaxIrpaRanks)));
  for (const json::Value& rank : value.as_array()) {
    if (!rank.is_int64() || rank.get_int64() != static_cast<int64_t>(ranks.size()))
      return Fail(InvalidArgument(fmt::format("{} has {} at position {}, expected {}", key,
                                              json::Serialize(rank).substr(0, 40), ranks.size(),
                                              ranks.size())));
    ranks.push_back(rank.get_int64());
  }
  return ranks;
}

}  // namespace

const DatasetKeys& Keys(KeyGeneration generation) {
  return generation == KeyGeneration::kShark ? kSharkKeys : kAmdSharkKeys;
}

bool IsDataset(const ParameterIndex& index) {
  return FindGeneration(index).has_value();
}

Result<Dataset> ReadDataset(const ParameterIndex& index) {
  const auto generation = FindGeneration(index);
  if (!generation.has_value())
    return Fail(NotFound(fmt::format("the archive is no dataset: it has neither {} nor {}",
                                     kSharkKeys.properties, kAmdSharkKeys.properties)));
  const DatasetKeys& keys = Keys(*generation);
  Dataset dataset;
  dataset.generation = *generation;
  TESSERA_ASSIGN_OR_RETURN(dataset.properties, NeedObject(index, keys.properties));
  TESSERA_ASSIGN_OR_RETURN(const int64_t version,
                           json::GetInt(dataset.properties, keys.version, kDatasetVersion));
  if (version != kDatasetVersion)
    return Fail(Unimplemented(
        fmt::format("{} is {}, expected {}", keys.version, version, kDatasetVersion)));
  TESSERA_ASSIGN_OR_RETURN(dataset.inference_tensors, NeedObject(index, keys.inference_tensors));
  TESSERA_ASSIGN_OR_RETURN(dataset.ranks, ReadRanksOf(index, *generation));
  return dataset;
}

Result<std::vector<int64_t>> ReadRanks(const ParameterIndex& index) {
  const auto generation = FindGeneration(index);
  if (!generation.has_value()) return std::vector<int64_t>();
  return ReadRanksOf(index, *generation);
}

std::filesystem::path RankPath(const std::filesystem::path& path, int64_t rank) {
  return path.parent_path() /
         fmt::format("{}.rank{}{}", path.stem().string(), rank, path.extension().string());
}

std::vector<DatasetBlob> MakeBlobs(const json::Object& properties, int64_t ranks,
                                   const json::Object& inference_tensors) {
  constexpr int kIndent = 2;
  const DatasetKeys& keys = Keys(KeyGeneration::kShark);
  std::vector<DatasetBlob> blobs;
  blobs.push_back({std::string(keys.properties), PythonJson(properties, kIndent)});
  if (ranks > 1) {
    json::Array list;
    for (int64_t rank = 0; rank < ranks; ++rank) list.emplace_back(rank);
    blobs.push_back({std::string(keys.shard_ranks), PythonJson(list, 0)});
  }
  blobs.push_back({std::string(keys.inference_tensors), PythonJson(inference_tensors, kIndent)});
  return blobs;
}

Result<ParameterIndex> OpenWithRanks(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(auto mapping, MappedFile::Open(path));
  TESSERA_ASSIGN_OR_RETURN(ParameterIndex index, Open(std::move(mapping)));
  auto ranks = ReadRanks(index);
  if (!ranks.has_value()) return Fail(ranks.error().WithContext(path.string()));
  for (const int64_t rank : *ranks) {
    Status joined = [&]() -> Status {
      TESSERA_ASSIGN_OR_RETURN(auto rank_mapping, MappedFile::Open(RankPath(path, rank)));
      TESSERA_ASSIGN_OR_RETURN(ParameterIndex part, Open(std::move(rank_mapping)));
      return index.Join(std::move(part));
    }();
    if (!joined.ok())
      return Fail(std::move(joined).WithContext(
          fmt::format("{}: rank {} of {}", path.string(), rank, ranks->size())));
  }
  return index;
}

}  // namespace tessera::formats::irpa
