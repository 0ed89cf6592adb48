// SPDX-License-Identifier: Apache-2.0
//
// Which entries the files of a dataset have, and of what each consists: everything about a dataset
// but its bytes.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "compiler/dataset/shard_bytes.h"
#include "formats/irpa/writer.h"

namespace tessera::compiler {

/// One DATA or SPLAT entry.
struct DatasetEntry {
  size_t tensor = 0;
  int64_t plane = 0;
  TensorPart part;
  std::string text;  // Of a blob, which has no tensor.
};

struct DatasetFile {
  std::vector<formats::irpa::WriteEntry> entries;
  std::vector<DatasetEntry> contents;  // Parallel to `entries`.
};

/// Of one rank: files[0] is X.irpa with tensors and blobs. Of several: X.irpa with the blobs alone,
/// then a file a rank. Sharded planar tensors are ours (sharktank shards plain ones only): the
/// shards' planes are raw_tensors "0:d", "0:qs", ..., named "NAME.shard.0:d".
/// kInvalidArgument when a tensor does not divide by the ranks.
Result<std::vector<DatasetFile>> LayOutDataset(const std::vector<DatasetTensor>& tensors,
                                               const std::vector<StoredForm>& forms,
                                               const std::vector<ShardBytes>& bytes,
                                               const json::Object& properties, int64_t ranks);

}  // namespace tessera::compiler
