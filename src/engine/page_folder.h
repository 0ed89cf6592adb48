// SPDX-License-Identifier: Apache-2.0
//
// PageFolder: KV pages as files of one folder. Every call may wait for the disk.
//
//   DIR/lock           held as long as the folder is open: one process at a time
//   DIR/tmp/           pages being written; what is found there at the start is deleted
//   DIR/pages/ab/<64 hex digits>.kv
//
// A page appears by a rename, so that whoever dies while writing leaves no half page under its
// name. Nothing is synced: what a power failure tears fails its checksum (kv_page.h). Files of
// other names are left alone. Folders and files are for their owner only, since KV says what the
// prompt was. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/kv_page.h"
#include "engine/page_store.h"

namespace tessera::engine {

class PageFolder {
 public:
  struct File {
    PageHash hash;
    int64_t bytes = 0;
    int64_t used_ns = 0;  // Last use, since 1970.
  };

  /// Makes the folder if need be, and shows that it can be written to. kUnavailable when another
  /// process has it, else what the system said.
  static Result<std::unique_ptr<PageFolder>> Open(const std::filesystem::path& path);
  ~PageFolder();
  PageFolder(const PageFolder&) = delete;
  PageFolder& operator=(const PageFolder&) = delete;

  /// All pages, whatever made them, used longest ago first.
  Result<std::vector<File>> List() const;
  Status Write(const KvPageName& name, ByteSpan payload);
  /// kNotFound, kDataLoss when the file is no such page, else what the system said.
  Result<std::shared_ptr<const PageBuffer>> Read(const KvPageName& name) const;
  /// As used now, for the List of a later process. Best effort.
  void Touch(const PageHash& hash) const;
  /// Best effort: what cannot be removed only costs space.
  void Remove(const PageHash& hash) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  PageFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  Status Prepare();
  std::filesystem::path PathOf(const PageHash& hash) const;

  const std::filesystem::path path_;
  const int lock_;
  uint64_t temporaries_ = 0;  // Numbers their names.
};

}  // namespace tessera::engine
