// SPDX-License-Identifier: Apache-2.0
//
// How quickly the bytes of a file become memory: what a prediction of the time to load rests on.
// Short measurements, as those of machine_probe.h.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace tessera::runtime {

/// Bytes a second at which pages of a file that the system has in memory are mapped, by `threads`
/// threads that touch them: of 64 MB in a nameless_file.h. kResourceExhausted
/// without room or threads.
Result<double> MeasureMapping(int threads);

/// Bytes a second that the disk gives of `file`, past the page cache: some 64 MB from its middle.
/// 0 where that cannot be known: a file system without direct reading, a file too small, or a hole.
double MeasureDisk(const std::filesystem::path& file);

}  // namespace tessera::runtime
