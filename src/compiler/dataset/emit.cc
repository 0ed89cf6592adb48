// SPDX-License-Identifier: Apache-2.0
#include "compiler/dataset/emit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/ordered_work.h"
#include "base/topology.h"
#include "compiler/dataset/draft.h"
#include "compiler/dataset/gguf_properties.h"
#include "compiler/dataset/layout.h"
#include "compiler/dataset/shard_rules.h"
#include "formats/irpa/dataset.h"

namespace tessera::compiler {
namespace {

namespace fs = std::filesystem;
namespace irpa = formats::irpa;

constexpr uint64_t kPieceBytes = 1 << 20;

/// Rows [first, first + count) of an entry.
struct Piece {
  const DatasetEntry* entry = nullptr;
  int64_t first = 0;
  int64_t count = 0;
};

class Emitter {
 public:
  Emitter(const model::ModelSource& source, const ProgressFn& progress)
      : index_(source.index), progress_(progress) {}

  Status Prepare(std::vector<DatasetTensor> tensors, const json::Object& properties, int64_t ranks,
                 std::vector<std::string>* notes) {
    tensors_ = std::move(tensors);
    for (const DatasetTensor& tensor : tensors_) {
      TESSERA_ASSIGN_OR_RETURN(StoredForm form, ChooseStoredForm(tensor));
      if (!form.note.empty()) notes->push_back(form.note);
      forms_.push_back(std::move(form));
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      TESSERA_ASSIGN_OR_RETURN(ShardBytes bytes, ShardBytes::Open(tensors_[i], index_, forms_[i]));
      bytes_.push_back(std::move(bytes));
    }
    TESSERA_ASSIGN_OR_RETURN(files_, LayOutDataset(tensors_, forms_, bytes_, properties, ranks));
    for (const DatasetFile& file : files_)
      for (const irpa::WriteEntry& entry : file.entries)
        if (!entry.splat) total_ += entry.bytes;
    return {};
  }

  size_t files() const { return files_.size(); }

  /// Bytes of the finished file.
  Result<uint64_t> Write(size_t file, const fs::path& path) {
    TESSERA_ASSIGN_OR_RETURN(const auto writer,
                             irpa::ArchiveWriter::Create(path, files_[file].entries, {}));
    std::vector<Piece> pieces;
    for (size_t i = 0; i < files_[file].entries.size(); ++i) AddPieces(files_[file], i, &pieces);
    const auto make = [&](int64_t i, std::vector<std::byte>* out) {
      return Make(pieces[static_cast<size_t>(i)], out);
    };
    const auto take = [&](int64_t i, ByteSpan bytes) -> Status {
      TESSERA_RETURN_IF_ERROR(writer->Append(bytes));
      const Piece& piece = pieces[static_cast<size_t>(i)];
      if (piece.entry->text.empty())
        bytes_[piece.entry->tensor].DoneWith(piece.entry->part, piece.first, piece.count);
      done_ += bytes.size();
      if (progress_) progress_({kDatasetStage, done_, total_});
      return {};
    };
    constexpr int kMostThreads = 4;  // More outrun the disk.
    const int threads = std::clamp(ReadTopology().DefaultThreads(), 1, kMostThreads);
    TESSERA_RETURN_IF_ERROR(MakeInOrder(std::ssize(pieces), threads, make, take));
    TESSERA_RETURN_IF_ERROR(writer->Finish());
    return writer->file_bytes();
  }

 private:
  void AddPieces(const DatasetFile& file, size_t i, std::vector<Piece>* pieces) const {
    const DatasetEntry& entry = file.contents[i];
    if (file.entries[i].splat || file.entries[i].bytes == 0) return;
    if (!entry.text.empty()) {
      pieces->push_back({&entry, 0, 1});
      return;
    }
    const uint64_t row_bytes = bytes_[entry.tensor].plane_row_bytes(entry.plane, entry.part);
    const auto at_once = static_cast<int64_t>(std::max<uint64_t>(kPieceBytes / row_bytes, 1));
    for (int64_t row = 0; row < entry.part.rows; row += at_once)
      pieces->push_back({&entry, row, std::min(at_once, entry.part.rows - row)});
  }

  Status Make(const Piece& piece, std::vector<std::byte>* out) const {
    const DatasetEntry& entry = *piece.entry;
    if (entry.text.empty())
      return bytes_[entry.tensor].Append(entry.plane, entry.part, piece.first, piece.count, out);
    const ByteSpan text = AsBytes(entry.text);
    out->assign(text.begin(), text.end());
    return {};
  }

  const formats::ParameterIndex& index_;
  const ProgressFn& progress_;
  std::vector<DatasetTensor> tensors_;
  std::vector<StoredForm> forms_;
  std::vector<ShardBytes> bytes_;
  std::vector<DatasetFile> files_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

Result<DatasetReport> EmitDataset(const model::ModelSource& source, const DatasetOptions& options,
                                  const ProgressFn& progress) {
  if (options.path.extension() != ".irpa")
    return Fail(InvalidArgument(
        fmt::format("{}: the name of a dataset ends with .irpa", options.path.string())));
  if (options.ranks != 1) TESSERA_RETURN_IF_ERROR(CheckRanks(source.config, options.ranks));
  DatasetReport report;
  TESSERA_ASSIGN_OR_RETURN(const json::Object properties,
                           MakeDatasetProperties(source, options.ranks));
  TESSERA_ASSIGN_OR_RETURN(std::vector<DatasetTensor> tensors, ListDatasetTensors(source));
  Emitter emitter(source, progress);
  TESSERA_RETURN_IF_ERROR(
      emitter.Prepare(std::move(tensors), properties, options.ranks, &report.notes));
  if (progress) progress({kDatasetStage, 0, 0});
  DatasetDraft draft(options.path);
  for (size_t i = 0; i < emitter.files(); ++i) {
    const fs::path path =
        i == 0 ? options.path : irpa::RankPath(options.path, static_cast<int64_t>(i) - 1);
    TESSERA_ASSIGN_OR_RETURN(const fs::path file, draft.Add(path));
    TESSERA_ASSIGN_OR_RETURN(const uint64_t bytes, emitter.Write(i, file));
    report.files.push_back(path);
    report.bytes += bytes;
  }
  TESSERA_RETURN_IF_ERROR(source.index.CheckIntact());
  TESSERA_RETURN_IF_ERROR(draft.Publish());
  return report;
}

}  // namespace tessera::compiler
