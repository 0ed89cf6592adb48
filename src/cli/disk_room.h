// SPDX-License-Identifier: Apache-2.0
//
// DiskRoom: whether what is about to be written fits, before its first byte. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

namespace tessera::cli {

/// Bytes that will go into a folder, which need not be there yet.
struct DiskNeed {
  std::filesystem::path folder;
  uint64_t bytes = 0;
};

/// A file system with too little room: the nearest folder above that is there, all that is needed
/// on that file system, and what is free.
struct DiskLack {
  std::filesystem::path folder;
  uint64_t need = 0;
  uint64_t available = 0;
};

/// The first file system that lacks room: folders on one share it. Nothing when all fit, or where
/// the room cannot be known: writing will say.
std::optional<DiskLack> FindDiskLack(std::span<const DiskNeed> needs);

}  // namespace tessera::cli
