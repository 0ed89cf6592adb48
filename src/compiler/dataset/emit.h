// SPDX-License-Identifier: Apache-2.0
//
// Writes a model as a dataset that sharktank reads, byte for byte as sharktank writes it where it
// does: X.irpa, and for several ranks X.rank0.irpa, X.rank1.irpa, ... beside it. Streams: a few
// pieces of about a megabyte a thread are held, whatever the size. Complete or absent: everything
// is written beside the target under other names and renamed at the end, X.irpa last.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "model/open.h"

namespace tessera::compiler {

struct DatasetOptions {
  std::filesystem::path path;  // X.irpa
  int64_t ranks = 1;
};

struct DatasetReport {
  std::vector<std::filesystem::path> files;  // X.irpa first.
  uint64_t bytes = 0;
  std::vector<std::string> notes;  // Formats that changed.
};

/// Stage of the progress.
inline constexpr std::string_view kDatasetStage = "writing the dataset";

/// kInvalidArgument for ranks that do not divide the model, kUnimplemented for a type without
/// layout or a model that GGUF keys cannot describe, kResourceExhausted for a full disk. On an
/// error an older dataset of this name is as it was.
Result<DatasetReport> EmitDataset(const model::ModelSource& source, const DatasetOptions& options,
                                  const ProgressFn& progress = {});

}  // namespace tessera::compiler
