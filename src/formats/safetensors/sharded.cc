// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/sharded.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "base/file.h"
#include "base/json.h"
#include "formats/limits.h"
#include "formats/safetensors/reader.h"

namespace tessera::formats::safetensors {
namespace {

bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// Every row must name the shard that holds the tensor, and every tensor must have a row.
Status CheckAgainstShards(const ShardMap& map, const ParameterIndex& index) {
  for (const ShardMap::Row& row : map.rows) {
    const ParameterEntry* entry = index.Find(row.tensor);
    if (entry == nullptr)
      return DataLoss(fmt::format("weight_map says that {} is in {}, but no shard holds it",
                                  row.tensor, row.shard));
    const std::string holder = index.files()[entry->file].path.filename().string();
    if (holder != row.shard)
      return DataLoss(fmt::format("weight_map says that {} is in {}, but it is in {}", row.tensor,
                                  row.shard, holder));
  }
  if (map.rows.size() == index.entries().size()) return {};
  std::set<std::string_view> mapped;
  for (const ShardMap::Row& row : map.rows) mapped.insert(row.tensor);
  for (const ParameterEntry& entry : index.entries())
    if (!mapped.contains(entry.name))
      return DataLoss(fmt::format("{} holds tensor {}, which weight_map does not name",
                                  index.files()[entry.file].path.filename().string(), entry.name));
  return {};
}

}  // namespace

Result<ShardMap> ParseShardMap(std::string_view text, std::string_view where) {
  json::Limits limits;
  limits.max_bytes = kMaxSafetensorsIndexBytes;
  limits.max_depth = kMaxSafetensorsJsonDepth;
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(text, limits, where));
  const auto fail = [&](std::string message) {
    return Fail(InvalidArgument(std::move(message)).WithContext(std::string(where)));
  };
  if (!value.is_object())
    return fail(fmt::format("is {}, expected an object", json::KindName(value)));
  const json::Value* rows = json::Find(value.as_object(), "weight_map");
  if (rows == nullptr || !rows->is_object())
    return fail(fmt::format("weight_map is {}, expected an object",
                            rows == nullptr ? "missing" : json::KindName(*rows)));
  ShardMap map;
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : rows->as_object()) {
    const std::string_view name = tensor;
    if (!shard.is_string() || !IsPlainFileName(std::string_view(shard.as_string())))
      return fail(fmt::format("weight_map: {} is {}, expected a file name without folders", name,
                              json::Serialize(shard).substr(0, 80)));
    map.rows.push_back({std::string(name), std::string(std::string_view(shard.as_string()))});
    shards.insert(map.rows.back().shard);
    if (shards.size() > kMaxSafetensorsShards)
      return Fail(ResourceExhausted(
          fmt::format("{}: weight_map names more than {} files", where, kMaxSafetensorsShards)));
  }
  if (map.rows.empty()) return fail("weight_map is empty, expected a row for each tensor");
  map.shards.assign(shards.begin(), shards.end());
  return map;
}

Result<ParameterIndex> OpenSharded(const std::filesystem::path& index_file) {
  TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadFile(index_file, kMaxSafetensorsIndexBytes));
  TESSERA_ASSIGN_OR_RETURN(const ShardMap map, ParseShardMap(text, index_file.string()));
  ParameterIndex index;
  for (size_t i = 0; i < map.shards.size(); ++i) {
    if (!IsPresent(index_file.parent_path() / map.shards[i]))
      return Fail(NotFound(fmt::format(
          "{} names the shard {}, which is not there: put it beside the index, or fetch the "
          "repository again",
          index_file.string(), map.shards[i])));
    auto joined = [&]() -> Status {
      TESSERA_ASSIGN_OR_RETURN(auto mapping,
                               MappedFile::Open(index_file.parent_path() / map.shards[i]));
      TESSERA_ASSIGN_OR_RETURN(ParameterIndex shard, Open(std::move(mapping)));
      return index.Join(std::move(shard));
    }();
    if (!joined.ok())
      return Fail(std::move(joined).WithContext(
          fmt::format("{}: shard {} of {}", index_file.string(), i + 1, map.shards.size())));
  }
  Status checked = CheckAgainstShards(map, index);
  if (!checked.ok()) return Fail(std::move(checked).WithContext(index_file.string()));
  return index;
}

}  // namespace tessera::formats::safetensors
