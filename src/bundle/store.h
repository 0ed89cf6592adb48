// SPDX-License-Identifier: Apache-2.0
//
// Store: the cache of bundles, <cache>/bundles/<Model>/<target>-tp<N>-<quantization>-<key>/.
// A bundle is complete or absent: it is written into a temporary folder beside its place, synced
// and renamed. Two compilers of one key, in whatever processes, wait for each other at a lock file.
// A Store is a value without state; the disk is shared between processes.
//
//   BundleId id{...};
//   TESSERA_ASSIGN_OR_RETURN(BundleLock lock, store.Lock(id));           // may wait
//   TESSERA_ASSIGN_OR_RETURN(auto found, store.Find(id));                // the other may have made
//   it if (!found) { draft = store.NewDraft(lock); ...write files...; draft.Publish(manifest) }
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/draft.h"
#include "base/status.h"
#include "bundle/manifest.h"

namespace tessera::bundle {

/// Everything that decides what a compiled bundle contains. What comes from the stage *export* (the
/// packed parameters and the tokenizer) depends on less than the rest: `program_options` and
/// `program_sources` decide only what the stage *compile* makes.
struct BundleId {
  std::string model;
  std::string target;
  int64_t tensor_parallel = 1;
  std::string quantization;
  std::map<std::string, std::string> options;
  std::map<std::string, std::string> program_options;  // No key that `options` has.
  // Names do not enter the keys, contents and order do.
  std::vector<FileRecord> sources;
  std::vector<FileRecord> program_sources;

  /// 16 hex digits of a SHA-256 over the format version and all fields but `model`.
  std::string Key() const;
  /// The same without `program_options` and `program_sources`: bundles with one export key have the
  /// same parameters and tokenizer.
  std::string ExportKey() const;
  /// Both kinds: what the manifest records.
  std::map<std::string, std::string> AllOptions() const;
  std::vector<FileRecord> AllSources() const;
  /// "cpu-tp1-source-0123456789abcdef"
  std::string FolderName() const;
};

/// The option that holds the version of the quantisers, where something is quantised.
inline constexpr std::string_view kQuantiserOption = "quantiser";

/// What differs between an existing bundle and the wanted one, for people: "batch sizes changed
/// 4 -> 8"; empty when nothing does. Of the stage *export* only what that depends on.
enum class Stages : uint8_t { kExport, kAll };
std::string ExplainDifference(const Manifest& existing, const BundleId& wanted,
                              Stages stages = Stages::kAll);

/// An exclusive lock of one key, released when the object dies or its process ends.
class BundleLock {
 public:
  BundleLock(BundleLock&& other) noexcept;
  BundleLock& operator=(BundleLock&&) = delete;
  ~BundleLock();

 private:
  friend class Store;
  BundleLock(int fd, std::filesystem::path folder) : fd_(fd), folder_(std::move(folder)) {}
  int fd_;
  std::filesystem::path folder_;  // The bundle that is locked.
};

/// A bundle being written. Dying without Publish() removes it.
class BundleDraft {
 public:
  /// What was recorded; null when there is no such file.
  const FileRecord* FindFile(std::string_view name) const;
  /// Where files go; the writer of model.irpa streams into it.
  const std::filesystem::path& folder() const { return draft_.path(); }
  /// Writes a small file and records its hash.
  Status AddFile(std::string_view name, std::string_view contents);
  /// Records a file that was written by somebody else.
  void Record(FileRecord file);
  /// The file of another bundle under the same name, without copying its bytes where the file
  /// system can share them: files of bundles never change.
  Status Link(const std::filesystem::path& from, const FileRecord& file);
  /// Brings what was recorded so far to the disk. Publish() does, too: this is for who wants to
  /// know how long it takes.
  Status Sync();
  /// Where it will be.
  const std::filesystem::path& target() const { return target_; }
  /// Writes `manifest` with the recorded files, syncs, renames into place. A damaged bundle there
  /// is replaced. Returns the final folder.
  Result<std::filesystem::path> Publish(Manifest manifest) &&;

 private:
  friend class Store;
  BundleDraft(Draft draft, std::filesystem::path target)
      : draft_(std::move(draft)), target_(std::move(target)) {}
  Draft draft_;
  std::filesystem::path target_;
  std::vector<FileRecord> files_;
  size_t synced_ = 0;  // The first so many of `files_`.
};

class Store {
 public:
  /// `cache` is made when first needed.
  explicit Store(std::filesystem::path cache) : cache_(std::move(cache)) {}

  const std::filesystem::path& cache() const { return cache_; }
  std::filesystem::path FolderOf(const BundleId& id) const;

  /// Waits for other holders; `on_wait` is called once before waiting.
  Result<BundleLock> Lock(const BundleId& id, const std::function<void()>& on_wait = {}) const;

  /// The bundle's folder if it is there and its small files are whole; nothing if it is absent.
  /// kDataLoss (one line: which file, what differs) for a damaged one.
  Result<std::optional<std::filesystem::path>> Find(const BundleId& id) const;

  /// The newest other bundle of the same model: to explain why this one must be made.
  std::optional<Manifest> NewestSibling(const BundleId& id) const;

  struct Exported {
    std::filesystem::path folder;
    Manifest manifest;
  };
  /// A whole bundle of the same model (sizes and small files are checked) whose parameters and
  /// tokenizer are those of `id`; may be the one of `id` itself.
  std::optional<Exported> FindExport(const BundleId& id) const;

  /// Removes what dead writers of this model left behind.
  Result<BundleDraft> NewDraft(const BundleLock& lock) const;

 private:
  std::filesystem::path cache_;
};

/// A model name as one folder name: "org/name" -> "org--name"; other odd bytes become '_'.
std::string FolderSafeName(std::string_view model);

}  // namespace tessera::bundle
