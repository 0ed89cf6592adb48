// SPDX-License-Identifier: Apache-2.0
//
// Writes the archives of a CPU program: every weight packed as the kernels read it, in the order of
// the program, each at a multiple of 4096. Streams: a few pieces of about a megabyte a thread are
// held at a time. Several threads pack and write (the file grows out of order), the caller's
// hashes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bundle/manifest.h"
#include "compiler/compile.h"
#include "compiler/module.h"

namespace tessera::compiler {

/// A stage of the progress.
inline constexpr std::string_view kPackingStage = "packing parameters";

enum class Hashing : uint8_t { kOnTheWay, kNone };

/// One file: its weights, each with how it is made.
struct Archive {
  std::string file;  // "model.irpa"
  std::vector<bundle::Weight> weights;
  std::vector<Recipe> recipes;
  std::string identity = {};  // bundle/identity.h; empty: none.
};

/// The records of the files, which are whole but not synced; their hashes are computed on the way,
/// or empty. `index` is what the recipes read. kResourceExhausted before the first byte where
/// the disk lacks room; errors of the disk and of conversions, naming the weight. Progress is
/// reported as `stage`.
Result<std::vector<bundle::FileRecord>> WriteCpuArchives(const formats::ParameterIndex& index,
                                                         const std::vector<Archive>& archives,
                                                         const std::filesystem::path& folder,
                                                         const ProgressFn& progress,
                                                         Hashing hashing = Hashing::kOnTheWay,
                                                         std::string_view stage = kPackingStage);

/// What writing them takes.
struct ArchiveNeeds {
  uint64_t disk = 0;     // Of the files; splats take none.
  uint64_t buffers = 0;  // Private memory, at the most.
  uint64_t mapped = 0;   // Of the sources, resident at a time.
};
/// From headers, and the patterns of splats; errors as WriteCpuArchives.
Result<ArchiveNeeds> NeedsOf(const formats::ParameterIndex& index,
                             const std::vector<Archive>& archives);

}  // namespace tessera::compiler
