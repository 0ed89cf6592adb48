// SPDX-License-Identifier: Apache-2.0
#include "compiler/targets/cpu/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/ordered_work.h"
#include "base/topology.h"
#include "bundle/identity.h"
#include "compiler/targets/cpu/row_source.h"
#include "compiler/targets/cpu/splats.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/writer.h"
#include "kernels/pack.h"

namespace tessera::compiler {
namespace {

namespace irpa = formats::irpa;

constexpr uint64_t kAlignment = 4096;  // A page: ranges may be advised and locked alone.
// Packed at a time: packing, writing and hashing find it in a core's second cache.
constexpr int64_t kPieceBytes = 1 << 20;

/// The standard metadata of a tensor, with a member that says how the bytes lie.
Result<std::string> EntryMetadata(const bundle::Weight& weight) {
  const bool plain =
      weight.layout == bundle::WeightLayout::kRows && !tensor::IsQuantised(weight.dtype);
  irpa::TensorType type{tensor::DType::kU8, {weight.bytes}};
  if (plain) {
    type.dtype = weight.dtype;
    type.shape = weight.n == 1 ? tensor::Shape{weight.k} : tensor::Shape{weight.n, weight.k};
  }
  TESSERA_ASSIGN_OR_RETURN(std::string text,
                           irpa::MakeEntryMetadata(irpa::MetadataStyle::kPytorch, type));
  text.pop_back();  // The closing brace.
  return fmt::format(R"({}, "tessera": {{"layout": "{}", "dtype": "{}", "n": {}, "k": {}}}}})",
                     text, bundle::LayoutName(weight.layout), tensor::Name(weight.dtype), weight.n,
                     weight.k);
}

using Splats = std::vector<std::optional<formats::Splat>>;  // By weight.

Result<std::vector<irpa::WriteEntry>> EntriesOf(const Archive& archive, const Splats& splats) {
  std::vector<irpa::WriteEntry> entries;
  for (size_t i = 0; i < archive.weights.size(); ++i) {
    const bundle::Weight& weight = archive.weights[i];
    irpa::WriteEntry entry;
    entry.splat = splats[i];
    entry.name = weight.entry;
    TESSERA_ASSIGN_OR_RETURN(entry.metadata, EntryMetadata(weight));
    entry.bytes = static_cast<uint64_t>(weight.bytes);
    entries.push_back(std::move(entry));
  }
  // Last: the others are found by the index of their weight.
  if (!archive.identity.empty()) {
    TESSERA_ASSIGN_OR_RETURN(const formats::Splat splat, bundle::IdentitySplat(archive.identity));
    entries.push_back({.name = bundle::IdentityEntry(archive.file),
                       .metadata = {},
                       .bytes = splat.pattern_bytes,
                       .splat = splat});
  }
  return entries;
}

/// The file, written at any place from any thread, and the hash of all its bytes, padding included,
/// which are given to it a second time in their order.
class HashedFile {
 public:
  static Result<HashedFile> Create(const std::filesystem::path& path,
                                   std::span<const irpa::WriteEntry> entries, Hashing hashing) {
    HashedFile archive;
    archive.name_ = path.filename().string();
    archive.hashing_ = hashing;
    TESSERA_ASSIGN_OR_RETURN(archive.plan_,
                             irpa::PlanArchive(entries, irpa::WriteOptions{kAlignment}));
    TESSERA_ASSIGN_OR_RETURN(archive.file_, FileWriter::Create(path));
    TESSERA_RETURN_IF_ERROR(archive.file_->WriteAt(0, AsBytes(archive.plan_.head)));
    archive.hash_ = std::make_unique<Sha256>();
    archive.Update(AsBytes(archive.plan_.head));
    return archive;
  }

  /// Bytes of entry `index` from its byte `offset` on. Any thread.
  Status Write(size_t index, uint64_t offset, ByteSpan bytes) const {
    // The kernel lets one writer into a file at a time and keeps the others spinning: a core lost.
    const std::lock_guard lock(*one_writer_);
    return file_->WriteAt(plan_.data_offsets[index] + offset, bytes);
  }
  /// Hashes what is written there; in the order of the file.
  void Hash(size_t index, uint64_t offset, ByteSpan bytes) {
    PadTo(plan_.data_offsets[index] + offset);
    Update(bytes);
  }
  /// After the last entry: the file has its size.
  Result<bundle::FileRecord> Finish() {
    PadTo(plan_.file_bytes);
    TESSERA_RETURN_IF_ERROR(file_->Resize(plan_.file_bytes));
    bundle::FileRecord record{name_, hashed_, {}};
    if (hashing_ == Hashing::kOnTheWay) record.sha256 = hash_->FinishHex();
    file_.reset();
    return record;
  }

 private:
  void Update(ByteSpan bytes) {
    if (hashing_ == Hashing::kOnTheWay) hash_->Update(bytes);
    hashed_ += bytes.size();
  }
  void PadTo(uint64_t offset) {
    static constexpr std::array<std::byte, kAlignment> kZeros{};
    TESSERA_CHECK(offset >= hashed_ && offset - hashed_ <= kZeros.size());  // Nothing is left out.
    Update(ByteSpan(kZeros).first(offset - hashed_));
  }

  std::string name_;
  irpa::ArchivePlan plan_;
  std::unique_ptr<FileWriter> file_;
  std::unique_ptr<std::mutex> one_writer_ = std::make_unique<std::mutex>();
  std::unique_ptr<Sha256> hash_;
  Hashing hashing_ = Hashing::kOnTheWay;
  uint64_t hashed_ = 0;
};

/// Groups (packed), rows, or the whole (vectors) [begin, begin + count) of a weight.
struct Piece {
  size_t weight = 0;
  int64_t begin = 0;
  int64_t count = 0;
  uint64_t offset = 0;  // Of its first byte in the weight.
  int64_t part = 0;     // Layout kSegments: which segment.
};

/// Matrices that lie one after the other in a weight.
int64_t PartsOf(const bundle::Weight& weight) {
  return weight.layout == bundle::WeightLayout::kSegments ? weight.segments : 1;
}

void AddPieces(const bundle::Weight& weight, size_t index, std::vector<Piece>* pieces) {
  const bool packed = weight.layout != bundle::WeightLayout::kRows;
  const int64_t parts = PartsOf(weight);
  const int64_t units = packed ? kernels::GroupCount(weight.n) : weight.n;
  const int64_t unit_bytes =
      packed ? kernels::GroupBytes(weight.dtype, weight.k / parts) : weight.bytes / weight.n;
  const int64_t at_once = std::max<int64_t>(kPieceBytes / unit_bytes, 1);
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t begin = 0; begin < units; begin += at_once)
      pieces->push_back({index, begin, std::min(at_once, units - begin),
                         static_cast<uint64_t>((part * units + begin) * unit_bytes), part});
}

/// Makes the bytes of a piece. Any thread.
class PieceMaker {
 public:
  PieceMaker(const formats::ParameterIndex& index, const Archive& archive)
      : index_(index), archive_(archive) {}

  Status Make(const Piece& piece, std::vector<std::byte>* out) const {
    const bundle::Weight& weight = archive_.weights[piece.weight];
    TESSERA_ASSIGN_OR_RETURN(const RowSource rows,
                             RowSource::Open(weight, archive_.recipes[piece.weight], index_));
    if (weight.layout != bundle::WeightLayout::kRows) {
      TESSERA_RETURN_IF_ERROR(Pack(weight, rows, piece, out));
      const int64_t begin = piece.begin * kernels::kGroupRows;
      rows.DoneWith(begin, std::min(piece.count * kernels::kGroupRows, weight.n - begin));
      return {};
    }
    if (weight.n > 1) {
      TESSERA_RETURN_IF_ERROR(CopyRows(rows, piece, out));
      rows.DoneWith(piece.begin, piece.count);
      return {};
    }
    TESSERA_ASSIGN_OR_RETURN(const std::vector<float> values, rows.Elements());
    const auto bytes = std::as_bytes(std::span(values));
    out->assign(bytes.begin(), bytes.end());
    return {};
  }

 private:
  static Status CopyRows(const RowSource& rows, const Piece& piece, std::vector<std::byte>* out) {
    std::vector<std::byte> scratch;
    for (int64_t row = piece.begin; row < piece.begin + piece.count; ++row) {
      TESSERA_ASSIGN_OR_RETURN(const std::byte* bytes, rows.Row(row, &scratch));
      if (bytes == nullptr) {
        out->resize(out->size() + rows.row_bytes());  // A row of zeros.
      } else {
        out->insert(out->end(), bytes, bytes + rows.row_bytes());
      }
    }
    return {};
  }

  static Status Pack(const bundle::Weight& weight, const RowSource& rows, const Piece& piece,
                     std::vector<std::byte>* out) {
    const int64_t k = weight.k / PartsOf(weight);
    TESSERA_ASSIGN_OR_RETURN(const uint64_t skipped,
                             tensor::RowBytes(weight.dtype, static_cast<uint64_t>(piece.part * k)));
    const int64_t group_bytes = kernels::GroupBytes(weight.dtype, k);
    out->resize(static_cast<size_t>(piece.count * group_bytes));
    std::array<std::vector<std::byte>, kernels::kGroupRows> converted;
    for (int64_t i = 0; i < piece.count; ++i) {
      std::array<const std::byte*, kernels::kGroupRows> pointers{};
      for (int64_t j = 0; j < kernels::kGroupRows; ++j) {
        const int64_t row = (piece.begin + i) * kernels::kGroupRows + j;
        if (row >= weight.n) continue;  // Stays null: zeros.
        TESSERA_ASSIGN_OR_RETURN(const std::byte* bytes,
                                 rows.Row(row, &converted[static_cast<size_t>(j)]));
        if (bytes != nullptr) pointers[static_cast<size_t>(j)] = bytes + skipped;
      }
      kernels::PackGroup(weight.dtype, k, pointers, out->data() + i * group_bytes);
    }
    return {};
  }

  const formats::ParameterIndex& index_;
  const Archive& archive_;
};

/// Makers: with the hash on a thread of its own there is one more than cores, so that no core
/// waits while the hash does.
int PackingThreads() {
  constexpr int kMost = 4;  // More outrun the hash.
  return std::clamp(ReadTopology().DefaultThreads(), 1, kMost);
}

Result<Splats> SplatsOf(const formats::ParameterIndex& index, const Archive& archive) {
  const PieceMaker maker(index, archive);
  Splats splats;
  for (size_t i = 0; i < archive.weights.size(); ++i) {
    const auto make_first = [&](std::vector<std::byte>* bytes) {
      return maker.Make({.weight = i, .count = 1}, bytes);
    };
    TESSERA_ASSIGN_OR_RETURN(std::optional<formats::Splat> splat,
                             FindSplat(archive.weights[i], archive.recipes[i], index, make_first));
    splats.push_back(splat);
  }
  return splats;
}

/// What a piece of the weight takes of a thread: `buffers` and `mapped`.
ArchiveNeeds NeedsOfPiece(const bundle::Weight& weight, const Recipe& recipe,
                          const formats::ParameterIndex& index) {
  std::vector<Piece> pieces;
  AddPieces(weight, 0, &pieces);
  const bool packed = weight.layout != bundle::WeightLayout::kRows;
  const auto rows = static_cast<uint64_t>(
      std::min(pieces[0].count * (packed ? kernels::kGroupRows : 1), weight.n));
  const auto row_bytes = static_cast<uint64_t>(weight.bytes / weight.n);
  uint64_t source_row = 0;
  for (const std::string& name : recipe.sources)
    if (const formats::ParameterEntry* entry = index.Find(name);
        entry != nullptr && !entry->splat && entry->shape.elements() > 0)
      source_row = std::max(
          source_row,
          entry->bytes / static_cast<uint64_t>(entry->shape.elements() / entry->shape.columns()));
  ArchiveNeeds needs;
  const uint64_t converted = packed ? kernels::kGroupRows * row_bytes : 0;
  const uint64_t floats = static_cast<uint64_t>(weight.k) * sizeof(float);
  needs.buffers = kPiecesAhead * rows * row_bytes + converted + floats;
  // Of each source its rows, and of the folios at both ends what is mapped with them: a half each
  // (MappedFile::DoneWith).
  constexpr uint64_t kLargestFolio = 2 << 20;
  needs.mapped = rows * source_row + kLargestFolio * recipe.sources.size();
  return needs;
}

/// kResourceExhausted when the disk of `folder` has less room.
Status CheckRoom(uint64_t bytes, const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error || bytes <= space.available) return {};  // Not known: writing will say.
  return ResourceExhausted(
      fmt::format("the parameters need {:.1f} MB of disk and {:.1f} MB are free in {}: free some "
                  "space, name another folder with --cache-dir, or take fewer bits (--quantize)",
                  static_cast<double>(bytes) / 1e6, static_cast<double>(space.available) / 1e6,
                  folder.string()));
}

/// Of all archives together.
class Reporter {
 public:
  Reporter(const ProgressFn& progress, std::string_view stage)
      : progress_(progress), stage_(stage) {}
  void Add(const Archive& archive, const Splats& splats) {
    for (size_t i = 0; i < archive.weights.size(); ++i)
      if (!splats[i]) total_ += static_cast<uint64_t>(archive.weights[i].bytes);
  }
  void Packed(uint64_t bytes) {
    constexpr uint64_t kEvery = 4 << 20;
    done_ += bytes;
    if (bytes > 0 && done_ - reported_ < kEvery && done_ != total_) return;
    reported_ = done_;
    if (progress_) progress_({stage_, done_, total_});
  }
  uint64_t total() const { return total_; }

 private:
  const ProgressFn& progress_;
  const std::string_view stage_;
  uint64_t total_ = 0, done_ = 0, reported_ = 0;
};

Result<HashedFile> PackArchive(const formats::ParameterIndex& index, const Archive& archive,
                               const Splats& splats, const std::filesystem::path& folder,
                               Hashing hashing, Reporter* reporter) {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<irpa::WriteEntry> entries, EntriesOf(archive, splats));
  TESSERA_ASSIGN_OR_RETURN(HashedFile file,
                           HashedFile::Create(folder / archive.file, entries, hashing));
  std::vector<Piece> pieces;
  for (size_t i = 0; i < archive.weights.size(); ++i)
    if (!splats[i]) AddPieces(archive.weights[i], i, &pieces);
  const PieceMaker maker(index, archive);
  const auto make = [&](int64_t i, std::vector<std::byte>* out) -> Status {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    TESSERA_RETURN_IF_ERROR(maker.Make(piece, out));
    return file.Write(piece.weight, piece.offset,
                      *out);  // While its bytes are in this core's cache.
  };
  const auto take = [&](int64_t i, ByteSpan bytes) -> Status {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    file.Hash(piece.weight, piece.offset, bytes);
    reporter->Packed(bytes.size());
    return {};
  };
  TESSERA_RETURN_IF_ERROR(MakeInOrder(std::ssize(pieces), PackingThreads(), make, take));
  return file;
}

}  // namespace

Result<ArchiveNeeds> NeedsOf(const formats::ParameterIndex& index,
                             const std::vector<Archive>& archives) {
  ArchiveNeeds needs;
  for (const Archive& archive : archives) {
    TESSERA_ASSIGN_OR_RETURN(const Splats splats, SplatsOf(index, archive));
    TESSERA_ASSIGN_OR_RETURN(const auto entries, EntriesOf(archive, splats));
    TESSERA_ASSIGN_OR_RETURN(const irpa::ArchivePlan plan,
                             irpa::PlanArchive(entries, irpa::WriteOptions{kAlignment}));
    needs.disk += plan.file_bytes;
    for (size_t i = 0; i < archive.weights.size(); ++i) {
      if (splats[i]) continue;
      const ArchiveNeeds piece = NeedsOfPiece(archive.weights[i], archive.recipes[i], index);
      needs.buffers = std::max(needs.buffers, piece.buffers);
      needs.mapped = std::max(needs.mapped, piece.mapped);
    }
  }
  const auto threads = static_cast<uint64_t>(PackingThreads());
  needs.buffers *= threads;
  needs.mapped *= threads;
  return needs;
}

Result<std::vector<bundle::FileRecord>> WriteCpuArchives(const formats::ParameterIndex& index,
                                                         const std::vector<Archive>& archives,
                                                         const std::filesystem::path& folder,
                                                         const ProgressFn& progress,
                                                         Hashing hashing, std::string_view stage) {
  Reporter reporter(progress, stage);
  std::vector<Splats> splats;
  for (const Archive& archive : archives) {
    TESSERA_ASSIGN_OR_RETURN(Splats found, SplatsOf(index, archive));
    splats.push_back(std::move(found));
    reporter.Add(archive, splats.back());
  }
  TESSERA_RETURN_IF_ERROR(CheckRoom(reporter.total(), folder));
  reporter.Packed(0);
  std::vector<bundle::FileRecord> records;
  for (size_t i = 0; i < archives.size(); ++i) {
    TESSERA_ASSIGN_OR_RETURN(
        HashedFile file, PackArchive(index, archives[i], splats[i], folder, hashing, &reporter));
    TESSERA_ASSIGN_OR_RETURN(bundle::FileRecord record, file.Finish());
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace tessera::compiler
