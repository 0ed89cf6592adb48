// SPDX-License-Identifier: Apache-2.0
//
// Inference datasets on top of IRPA, as sharktank keeps them: JSON blobs among the tensors hold the
// model's properties, the logical tensors and the ranks. Their keys were renamed in late 2025
// (`__SHARK_*` to `__AMD_SHARK_*`); both generations are read. An archive without them is a plain
// archive.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/parameter_index.h"

namespace tessera::formats::irpa {

enum class KeyGeneration : uint8_t { kShark, kAmdShark };

struct DatasetKeys {
  std::string_view properties;         // "__SHARK_DATASET__"
  std::string_view inference_tensors;  // "__SHARK_INFERENCE_TENSORS__"
  std::string_view shard_ranks;        // "__SHARK_SHARD_RANKS__"
  std::string_view version;            // "SHARK_DATASET_VERSION", inside the properties.
};
const DatasetKeys& Keys(KeyGeneration generation);

/// Of "SHARK_DATASET_VERSION".
inline constexpr int64_t kDatasetVersion = 1;

struct Dataset {
  KeyGeneration generation = KeyGeneration::kShark;
  json::Object properties;
  /// Logical tensor name -> {"type_name", "raw_tensors": {plane or shard: entry name}, ...}.
  json::Object inference_tensors;
  /// [0, n) when the tensors lie in rank files; empty otherwise.
  std::vector<int64_t> ranks;
};

/// True when the index has a properties blob of either generation.
bool IsDataset(const ParameterIndex& index);

/// Parses the blobs; the older generation wins where a file carries both. kNotFound for a plain
/// archive; kInvalidArgument for blobs that are no JSON of the expected kind, for ranks that are
/// not 0, 1, ..., or when inference tensors are missing; kUnimplemented for a dataset version
/// other than 1. The file is named by the caller.
Result<Dataset> ReadDataset(const ParameterIndex& index);

/// The ranks alone, without parsing the larger blobs. Empty for files without rank files.
Result<std::vector<int64_t>> ReadRanks(const ParameterIndex& index);

/// "dir/x.irpa" and 1 -> "dir/x.rank1.irpa".
std::filesystem::path RankPath(const std::filesystem::path& path, int64_t rank);

/// A blob of the archive that names the others.
struct DatasetBlob {
  std::string name;
  std::string text;
};

/// The blobs in their order, last in the table, as sharktank writes them: properties, ranks (none
/// for one file), inference tensors. The older generation's keys, which every reader knows.
std::vector<DatasetBlob> MakeBlobs(const json::Object& properties, int64_t ranks,
                                   const json::Object& inference_tensors);

/// Opens an archive and, when it names ranks, its rank files after it.
Result<ParameterIndex> OpenWithRanks(const std::filesystem::path& path);

}  // namespace tessera::formats::irpa
