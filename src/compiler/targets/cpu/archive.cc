// SPDX-License-Identifier: Apache-2.0
#include "compiler/targets/cpu/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "compiler/targets/cpu/row_source.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/writer.h"
#include "kernels/pack.h"

namespace tessera::compiler {
namespace {

namespace irpa = formats::irpa;

constexpr uint64_t kAlignment = 4096;     // A page: ranges may be advised and locked alone.
constexpr int64_t kPieceBytes = 4 << 20;  // Packed at a time.

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

Result<std::vector<irpa::WriteEntry>> EntriesOf(const bundle::Program& program) {
  std::vector<irpa::WriteEntry> entries;
  for (const bundle::Weight& weight : program.weights) {
    irpa::WriteEntry entry;
    entry.name = weight.entry;
    TESSERA_ASSIGN_OR_RETURN(entry.metadata, EntryMetadata(weight));
    entry.bytes = static_cast<uint64_t>(weight.bytes);
    entries.push_back(std::move(entry));
  }
  return entries;
}

/// The writer together with the hash of all bytes that it puts into the file, padding included.
class HashedArchive {
 public:
  static Result<HashedArchive> Create(const std::filesystem::path& path,
                                      std::span<const irpa::WriteEntry> entries) {
    const irpa::WriteOptions options{kAlignment};
    HashedArchive archive;
    TESSERA_ASSIGN_OR_RETURN(archive.plan_, irpa::PlanArchive(entries, options));
    TESSERA_ASSIGN_OR_RETURN(archive.writer_, irpa::ArchiveWriter::Create(path, entries, options));
    archive.hash_ = std::make_unique<Sha256>();
    archive.Hash(AsBytes(archive.plan_.head));
    return archive;
  }

  /// Begins entry `index`; its bytes follow.
  void Begin(size_t index) { PadTo(plan_.data_offsets[index]); }
  Status Append(ByteSpan bytes) {
    Hash(bytes);
    return writer_->Append(bytes);
  }
  Result<bundle::FileRecord> Finish() {
    TESSERA_RETURN_IF_ERROR(writer_->Finish());
    PadTo(plan_.file_bytes);
    return bundle::FileRecord{std::string(bundle::kParametersFile), hashed_, hash_->FinishHex()};
  }

 private:
  void Hash(ByteSpan bytes) {
    hash_->Update(bytes);
    hashed_ += bytes.size();
  }
  void PadTo(uint64_t offset) {
    static constexpr std::array<std::byte, kAlignment> kZeros{};
    while (hashed_ < offset)
      Hash(ByteSpan(kZeros).first(std::min<uint64_t>(kZeros.size(), offset - hashed_)));
  }

  irpa::ArchivePlan plan_;
  std::unique_ptr<irpa::ArchiveWriter> writer_;
  std::unique_ptr<Sha256> hash_;
  uint64_t hashed_ = 0;
};

class CpuArchiveWriter {
 public:
  CpuArchiveWriter(const Module& module, HashedArchive archive, const ProgressFn& progress)
      : module_(module), archive_(std::move(archive)), progress_(progress) {
    for (const bundle::Weight& weight : module.program.weights)
      total_ += static_cast<uint64_t>(weight.bytes);
  }

  Result<bundle::FileRecord> Write() {
    const std::vector<bundle::Weight>& weights = module_.program.weights;
    for (size_t i = 0; i < weights.size(); ++i) {
      TESSERA_ASSIGN_OR_RETURN(const RowSource rows,
                               RowSource::Open(weights[i], module_.recipes[i], *module_.index));
      archive_.Begin(i);
      TESSERA_RETURN_IF_ERROR(WriteWeight(weights[i], rows));
    }
    return archive_.Finish();
  }

 private:
  Status WriteWeight(const bundle::Weight& weight, const RowSource& rows) {
    if (weight.layout == bundle::WeightLayout::kPacked8) return WritePacked(weight, rows);
    if (weight.n > 1) return WriteRows(weight, rows);
    TESSERA_ASSIGN_OR_RETURN(const std::vector<float> values, rows.Elements());
    return Append(std::as_bytes(std::span(values)));
  }

  Status WriteRows(const bundle::Weight& weight, const RowSource& rows) {
    std::vector<std::byte> piece, scratch;
    for (int64_t row = 0; row < weight.n; ++row) {
      TESSERA_ASSIGN_OR_RETURN(const std::byte* bytes, rows.Row(row, &scratch));
      piece.insert(piece.end(), bytes, bytes + rows.row_bytes());
      if (std::ssize(piece) < kPieceBytes && row + 1 < weight.n) continue;
      TESSERA_RETURN_IF_ERROR(Append(piece));
      piece.clear();
    }
    return {};
  }

  Status WritePacked(const bundle::Weight& weight, const RowSource& rows) {
    const int64_t group_bytes = kernels::GroupBytes(weight.dtype, weight.k);
    const int64_t groups = kernels::GroupCount(weight.n);
    const int64_t at_once = std::clamp<int64_t>(kPieceBytes / group_bytes, 1, groups);
    std::vector<std::byte> piece(static_cast<size_t>(at_once * group_bytes));
    for (int64_t begin = 0; begin < groups; begin += at_once) {
      const int64_t count = std::min(at_once, groups - begin);
      for (int64_t i = 0; i < count; ++i)
        TESSERA_RETURN_IF_ERROR(PackOne(weight, rows, begin + i, piece.data() + i * group_bytes));
      TESSERA_RETURN_IF_ERROR(
          Append(ByteSpan(piece).first(static_cast<size_t>(count * group_bytes))));
    }
    return {};
  }

  Status PackOne(const bundle::Weight& weight, const RowSource& rows, int64_t group,
                 std::byte* packed) {
    std::array<const std::byte*, kernels::kGroupRows> pointers{};
    for (int64_t j = 0; j < kernels::kGroupRows; ++j) {
      const int64_t row = group * kernels::kGroupRows + j;
      if (row >= weight.n) continue;  // Stays null: zeros.
      TESSERA_ASSIGN_OR_RETURN(pointers[static_cast<size_t>(j)],
                               rows.Row(row, &converted_[static_cast<size_t>(j)]));
    }
    kernels::PackGroup(weight.dtype, weight.k, pointers, packed);
    return {};
  }

  Status Append(ByteSpan bytes) {
    TESSERA_RETURN_IF_ERROR(archive_.Append(bytes));
    done_ += bytes.size();
    constexpr uint64_t kReportEvery = 4 << 20;
    if (progress_ && (done_ - reported_ >= kReportEvery || done_ == total_)) {
      reported_ = done_;
      progress_({"packing parameters", done_, total_});
    }
    return {};
  }

  const Module& module_;
  HashedArchive archive_;
  const ProgressFn& progress_;
  std::array<std::vector<std::byte>, kernels::kGroupRows> converted_;
  uint64_t done_ = 0;
  uint64_t reported_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

Result<bundle::FileRecord> WriteCpuArchive(const Module& module, const std::filesystem::path& path,
                                           const ProgressFn& progress) {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<irpa::WriteEntry> entries, EntriesOf(module.program));
  TESSERA_ASSIGN_OR_RETURN(HashedArchive archive, HashedArchive::Create(path, entries));
  return CpuArchiveWriter(module, std::move(archive), progress).Write();
}

}  // namespace tessera::compiler
