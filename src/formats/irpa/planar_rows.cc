// SPDX-License-Identifier: Apache-2.0
#include "formats/irpa/planar_rows.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "formats/irpa/plane_blocks.h"
#include "formats/row_reader.h"
#include "tensor/convert.h"

namespace tessera::formats::irpa {
namespace {

using tensor::DType;
using tensor::Shape;

/// Block formats: a function per layout takes one row of every plane and writes the row's blocks.
class BlockRows : public RowMaker {
 public:
  BlockRows(std::vector<RowReader> planes, BlockAssembler assemble, uint64_t blocks,
            uint64_t repeat, uint64_t row_bytes)
      : planes_(std::move(planes)),
        assemble_(assemble),
        blocks_(blocks),
        repeat_(repeat),
        row_bytes_(row_bytes) {}

  Status MakeRows(int64_t first, int64_t count, std::span<std::byte> out) const override {
    std::vector<std::vector<std::byte>> scratch(planes_.size());
    std::vector<ByteSpan> rows(planes_.size());
    for (int64_t i = 0; i < count; ++i) {
      for (size_t p = 0; p < planes_.size(); ++p) {
        TESSERA_ASSIGN_OR_RETURN(rows[p], planes_[p].Row(first + i, &scratch[p]));
      }
      if (!assemble_(rows, blocks_, repeat_,
                     out.subspan(static_cast<uint64_t>(i) * row_bytes_, row_bytes_)))
        return DataLoss(fmt::format("row {}: the planes hold numbers that their {} does not",
                                    first + i, kBlockFormatKey));
    }
    return {};
  }

  void DoneWith(int64_t first, int64_t count) const override {
    for (const RowReader& plane : planes_) plane.DoneWith(first, count);
  }

 private:
  std::vector<RowReader> planes_;
  BlockAssembler assemble_;
  uint64_t blocks_;  // Of a row, as the format has them.
  uint64_t repeat_;  // Blocks that share one scale.
  uint64_t row_bytes_;
};

/// How a plane of scales lies over a row of codes.
struct Scales {
  RowReader reader;
  uint64_t per_row = 1;  // Values in a row of the plane.
  uint64_t each = 1;     // Columns that share one value.
  bool one_row = false;  // The same values for every row of the matrix.
};

enum class CodeKind : uint8_t { kNumbers, kNibbles, kSignedNibbles, kFp4 };

/// Everything else: float32, each product and sum rounded once.
class FloatRows : public RowMaker {
 public:
  FloatRows(RowReader codes, CodeKind kind, Scales scales, std::optional<Scales> offsets,
            bool offset_first, bool exponent_scales, uint64_t columns)
      : codes_(std::move(codes)),
        kind_(kind),
        scales_(std::move(scales)),
        offsets_(std::move(offsets)),
        offset_first_(offset_first),
        exponent_scales_(exponent_scales),
        columns_(columns) {}

  Status MakeRows(int64_t first, int64_t count, std::span<std::byte> out) const override {
    std::vector<float> row(columns_);
    for (int64_t i = 0; i < count; ++i) {
      TESSERA_RETURN_IF_ERROR(MakeRow(first + i, row));
      std::memcpy(out.data() + static_cast<uint64_t>(i) * columns_ * sizeof(float), row.data(),
                  columns_ * sizeof(float));
    }
    return {};
  }

  void DoneWith(int64_t first, int64_t count) const override { codes_.DoneWith(first, count); }

 private:
  Result<std::vector<float>> Values(const Scales& scales, int64_t row) const {
    std::vector<std::byte> scratch;
    TESSERA_ASSIGN_OR_RETURN(const ByteSpan bytes,
                             scales.reader.Row(scales.one_row ? 0 : row, &scratch));
    std::vector<float> values(scales.per_row);
    if (exponent_scales_ && &scales == &scales_) {
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = std::ldexp(1.0F, std::to_integer<int>(bytes[i]) - 127);
      return values;
    }
    TESSERA_RETURN_IF_ERROR(tensor::ToFloat(scales.reader.dtype(), bytes, values));
    return values;
  }

  Status Codes(int64_t at, std::span<float> row) const {
    std::vector<std::byte> scratch;
    TESSERA_ASSIGN_OR_RETURN(const ByteSpan bytes, codes_.Row(at, &scratch));
    if (kind_ == CodeKind::kNumbers) return tensor::ToFloat(codes_.dtype(), bytes, row);
    static constexpr std::array<float, 8> kFp4 = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    for (size_t i = 0; i < row.size(); ++i) {
      const int code = std::to_integer<int>(bytes[i / 2] >> (i % 2 * 4)) & 0xf;
      if (kind_ == CodeKind::kNibbles) row[i] = static_cast<float>(code);
      if (kind_ == CodeKind::kSignedNibbles)
        row[i] = static_cast<float>(code < 8 ? code : code - 16);
      if (kind_ == CodeKind::kFp4)
        row[i] = (code & 8) != 0 ? -kFp4[static_cast<size_t>(code & 7)]
                                 : kFp4[static_cast<size_t>(code)];
    }
    return {};
  }

  Status MakeRow(int64_t at, std::span<float> row) const {
    TESSERA_RETURN_IF_ERROR(Codes(at, row));
    TESSERA_ASSIGN_OR_RETURN(const std::vector<float> d, Values(scales_, at));
    std::vector<float> m;
    if (offsets_) {
      TESSERA_ASSIGN_OR_RETURN(m, Values(*offsets_, at));
    }
    for (size_t i = 0; i < row.size(); ++i) {
      const float scale = d[i / scales_.each];
      const float offset = m.empty() ? 0.0F : m[i / offsets_->each];
      row[i] = offset_first_ ? (row[i] - offset) * scale : row[i] * scale + offset;
    }
    return {};
  }

  RowReader codes_;
  CodeKind kind_;
  Scales scales_;
  std::optional<Scales> offsets_;
  bool offset_first_;  // d * (qs - m) instead of d * qs + m.
  bool exponent_scales_;
  uint64_t columns_;
};

bool IsFloat(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

bool SameButForTrailingOnes(const Shape& a, std::span<const int64_t> b) {
  std::span<const int64_t> left = a.dims();
  while (!left.empty() && left.back() == 1) left = left.first(left.size() - 1);
  while (!b.empty() && b.back() == 1) b = b.first(b.size() - 1);
  return std::ranges::equal(left, b);
}

/// Reads one tensor's planes by the layout's rules.
class PlaneOpener {
 public:
  PlaneOpener(const ParameterIndex& index, const Planes& planes)
      : index_(index),
        planes_(planes),
        rows_(planes.shape.rows()),
        columns_(static_cast<uint64_t>(planes.shape.columns())) {}

  Result<MadeRows> Open() const {
    if (planes_.shape.rank() < 1 || planes_.shape.elements() < 1)
      return Fail(InvalidArgument(
          fmt::format("shape {} has no elements to quantise", planes_.shape.ToString())));
    if (planes_.layout_type == "BlockScaledLayout") return BlockScaled();
    if (planes_.layout_type == "BlockScaledI4Layout") return BlockScaledI4();
    if (planes_.layout_type == "SuperBlockOffsetScaled_4_6_Layout") return SuperBlock();
    if (planes_.layout_type == "BlockScaledFp4Layout") return Fp4();
    if (planes_.layout_type == "TensorScaledLayout") return TensorScaled();
    return Fail(Unimplemented(fmt::format("layout {:.80}", planes_.layout_type)));
  }

 private:
  Result<const ParameterEntry*> Need(std::string_view plane) const {
    const ParameterEntry* entry = planes_.Find(plane);
    if (entry == nullptr)
      return Fail(InvalidArgument(fmt::format("{} has no plane {}", planes_.layout_type, plane)));
    return entry;
  }

  /// Leading dimensions of the tensor, then `inner`.
  std::vector<int64_t> ShapeOf(std::initializer_list<uint64_t> inner) const {
    const auto dims = planes_.shape.dims();
    std::vector<int64_t> shape(dims.begin(), dims.end() - 1);
    for (const uint64_t dim : inner) shape.push_back(static_cast<int64_t>(dim));
    return shape;
  }

  Result<RowReader> Plane(std::string_view name, std::initializer_list<uint64_t> inner,
                          std::initializer_list<DType> dtypes) const {
    TESSERA_ASSIGN_OR_RETURN(const ParameterEntry* entry, Need(name));
    const std::vector<int64_t> expected = ShapeOf(inner);
    if (!SameButForTrailingOnes(entry->shape, expected))
      return Fail(
          InvalidArgument(fmt::format("plane {} has shape {}, expected {}", entry->name,
                                      entry->shape.ToString(), Shape(expected).ToString())));
    if (std::ranges::find(dtypes, entry->dtype) == dtypes.end())
      return Fail(
          InvalidArgument(fmt::format("plane {} has dtype {}, expected {}", entry->name,
                                      tensor::Name(entry->dtype), tensor::Name(*dtypes.begin()))));
    return RowReader::OpenPieces(index_, *entry, rows_);
  }

  static constexpr std::initializer_list<DType> kScaleTypes = {DType::kF16, DType::kBF16,
                                                               DType::kF32, DType::kF64};

  /// Scales of `blocks` blocks a row.
  Result<Scales> BlockScales(std::string_view name, uint64_t blocks) const {
    TESSERA_ASSIGN_OR_RETURN(RowReader reader, Plane(name, {blocks, 1}, kScaleTypes));
    return Scales{std::move(reader), blocks, columns_ / blocks, false};
  }

  Result<uint64_t> BlocksOf(const ParameterEntry& codes, uint64_t codes_per_byte) const {
    const uint64_t block = static_cast<uint64_t>(codes.shape.columns()) * codes_per_byte;
    if (block < 1 || columns_ % block != 0)
      return Fail(InvalidArgument(fmt::format("plane {} has blocks of {}, which do not divide {}",
                                              codes.name, block, columns_)));
    return columns_ / block;
  }

  Result<MadeRows> Blocks(DType dtype, std::vector<RowReader> planes, BlockAssembler assemble,
                          uint64_t repeat) const {
    TESSERA_ASSIGN_OR_RETURN(const uint64_t row_bytes, tensor::RowBytes(dtype, columns_));
    const uint64_t blocks = columns_ / tensor::Info(dtype).block_elements;
    return MadeRows{
        dtype, std::make_shared<BlockRows>(std::move(planes), assemble, blocks, repeat, row_bytes)};
  }

  Result<MadeRows> Floats(RowReader codes, CodeKind kind, Scales scales,
                          std::optional<Scales> offsets, bool offset_first = false,
                          bool exponent_scales = false) const {
    return MadeRows{DType::kF32, std::make_shared<FloatRows>(
                                     std::move(codes), kind, std::move(scales), std::move(offsets),
                                     offset_first, exponent_scales, columns_)};
  }

  Result<std::optional<Scales>> Offsets(uint64_t blocks) const {
    if (planes_.Find("m") == nullptr) return std::optional<Scales>();
    TESSERA_ASSIGN_OR_RETURN(Scales m, BlockScales("m", blocks));
    return std::optional<Scales>(std::move(m));
  }

  static constexpr std::initializer_list<DType> kCodeTypes = {
      DType::kI8,         DType::kU8,  DType::kF8E4M3, DType::kF8E4M3Fnuz, DType::kF8E5M2,
      DType::kF8E5M2Fnuz, DType::kF16, DType::kBF16,   DType::kF32};

  Result<MadeRows> BlockScaled() const {
    TESSERA_ASSIGN_OR_RETURN(const ParameterEntry* qs, Need("qs"));
    TESSERA_ASSIGN_OR_RETURN(const uint64_t blocks, BlocksOf(*qs, 1));
    const uint64_t block = columns_ / blocks;
    TESSERA_ASSIGN_OR_RETURN(RowReader codes, Plane("qs", {blocks, block}, kCodeTypes));
    TESSERA_ASSIGN_OR_RETURN(Scales d, BlockScales("d", blocks));
    TESSERA_ASSIGN_OR_RETURN(std::optional<Scales> m, Offsets(blocks));
    if (codes.dtype() == DType::kI8 && d.reader.dtype() == DType::kF16 && !m &&
        block % kShortBlock == 0)
      return Blocks(DType::kQ8_0, {d.reader, codes}, AssembleQ8_0, block / kShortBlock);
    TESSERA_ASSIGN_OR_RETURN(const std::string made_of,
                             json::GetString(*planes_.metadata, kBlockFormatKey, ""));
    const bool whole = columns_ % kSuperBlock == 0 && codes.dtype() == DType::kI8 &&
                       d.reader.dtype() == DType::kF32;
    if (whole && made_of == "Q6_K" && block == 16 && !m)
      return Blocks(DType::kQ6_K, {d.reader, codes}, AssembleQ6_K, 1);
    if (whole && made_of == "Q5_K" && block == kShortBlock && m && m->reader.dtype() == DType::kF32)
      return Blocks(DType::kQ5_K, {d.reader, codes, m->reader}, AssembleQ5_K, 1);
    return Floats(std::move(codes), CodeKind::kNumbers, std::move(d), std::move(m));
  }

  Result<MadeRows> BlockScaledI4() const {
    TESSERA_ASSIGN_OR_RETURN(const bool is_signed,
                             json::GetBool(*planes_.metadata, "signed", false));
    TESSERA_ASSIGN_OR_RETURN(const ParameterEntry* qs, Need("qs"));
    TESSERA_ASSIGN_OR_RETURN(const uint64_t blocks, BlocksOf(*qs, 2));
    const uint64_t block = columns_ / blocks;
    TESSERA_ASSIGN_OR_RETURN(RowReader codes,
                             Plane("qs", {blocks, block / 2}, {DType::kU8, DType::kI8}));
    TESSERA_ASSIGN_OR_RETURN(Scales d, BlockScales("d", blocks));
    TESSERA_ASSIGN_OR_RETURN(std::optional<Scales> m, Offsets(blocks));
    const bool fits = d.reader.dtype() == DType::kF16 && block % kShortBlock == 0 &&
                      (!m || m->reader.dtype() == DType::kF16);
    const uint64_t repeat = block / kShortBlock;
    if (fits && is_signed && !m)
      return Blocks(DType::kQ4_0, {d.reader, codes}, AssembleQ4_0, repeat);
    if (fits && !is_signed && m)
      return Blocks(DType::kQ4_1, {d.reader, codes, m->reader}, AssembleQ4_1, repeat);
    if (fits && !is_signed) return Blocks(DType::kQ4_1, {d.reader, codes}, AssembleQ4_1, repeat);
    return Floats(std::move(codes), is_signed ? CodeKind::kSignedNibbles : CodeKind::kNibbles,
                  std::move(d), std::move(m));
  }

  Result<MadeRows> SuperBlock() const {
    if (columns_ % kSuperBlock != 0)
      return Fail(InvalidArgument(
          fmt::format("{} columns, expected a multiple of {}", columns_, kSuperBlock)));
    const uint64_t blocks = columns_ / kSuperBlock;
    std::vector<RowReader> planes;
    const auto add = [&](std::string_view name, std::initializer_list<uint64_t> inner,
                         DType dtype) -> Status {
      TESSERA_ASSIGN_OR_RETURN(RowReader plane, Plane(name, inner, {dtype}));
      planes.push_back(std::move(plane));
      return {};
    };
    TESSERA_RETURN_IF_ERROR(add("d", {blocks, 1}, DType::kF16));
    TESSERA_RETURN_IF_ERROR(add("dmin", {blocks, 1}, DType::kF16));
    TESSERA_RETURN_IF_ERROR(add("sb_scales_high", {blocks, 2}, DType::kU8));
    TESSERA_RETURN_IF_ERROR(add("sb_scales_low", {blocks, 4}, DType::kU8));
    TESSERA_RETURN_IF_ERROR(add("sb_mins_high", {blocks, 2}, DType::kU8));
    TESSERA_RETURN_IF_ERROR(add("sb_mins_low", {blocks, 4}, DType::kU8));
    TESSERA_RETURN_IF_ERROR(add("qs", {blocks, 8, 16}, DType::kU8));
    return Blocks(DType::kQ4_K, std::move(planes), AssembleQ4_K, 1);
  }

  Result<MadeRows> Fp4() const {
    TESSERA_ASSIGN_OR_RETURN(const bool exponents,
                             json::GetBool(*planes_.metadata, "use_fe8m0_scale", true));
    TESSERA_ASSIGN_OR_RETURN(const ParameterEntry* qs, Need("qs"));
    TESSERA_ASSIGN_OR_RETURN(const uint64_t blocks, BlocksOf(*qs, 2));
    const uint64_t block = columns_ / blocks;
    TESSERA_ASSIGN_OR_RETURN(RowReader codes, Plane("qs", {blocks, block / 2}, {DType::kU8}));
    if (!exponents) {
      TESSERA_ASSIGN_OR_RETURN(Scales d, BlockScales("d", blocks));
      return Floats(std::move(codes), CodeKind::kFp4, std::move(d), std::nullopt);
    }
    TESSERA_ASSIGN_OR_RETURN(RowReader d, Plane("d", {blocks, 1}, {DType::kU8, DType::kF8E8M0}));
    if (block == kShortBlock) return Blocks(DType::kMXFP4, {d, codes}, AssembleMxfp4, 1);
    return Floats(std::move(codes), CodeKind::kFp4, Scales{std::move(d), blocks, block, false},
                  std::nullopt, false, /*exponent_scales=*/true);
  }

  /// Scalar, one value a row, or one a column.
  Result<Scales> Broadcast(std::string_view name) const {
    TESSERA_ASSIGN_OR_RETURN(const ParameterEntry* entry, Need(name));
    if (!IsFloat(entry->dtype))
      return Fail(InvalidArgument(fmt::format("plane {} has dtype {}, expected a float",
                                              entry->name, tensor::Name(entry->dtype))));
    if (entry->shape.elements() == 1) {
      TESSERA_ASSIGN_OR_RETURN(RowReader reader, RowReader::OpenPieces(index_, *entry, 1));
      return Scales{std::move(reader), 1, columns_, true};
    }
    if (entry->shape.rank() == planes_.shape.rank() &&
        SameButForTrailingOnes(entry->shape, ShapeOf({1}))) {
      TESSERA_ASSIGN_OR_RETURN(RowReader reader, RowReader::OpenPieces(index_, *entry, rows_));
      return Scales{std::move(reader), 1, columns_, false};
    }
    if (tensor::SameButForLeadingOnes(entry->shape, Shape{static_cast<int64_t>(columns_)})) {
      TESSERA_ASSIGN_OR_RETURN(RowReader reader, RowReader::OpenPieces(index_, *entry, 1));
      return Scales{std::move(reader), columns_, 1, true};
    }
    return Fail(InvalidArgument(
        fmt::format("plane {} has shape {}, which is neither one value, one a row nor one a "
                    "column of {}",
                    entry->name, entry->shape.ToString(), planes_.shape.ToString())));
  }

  Result<MadeRows> TensorScaled() const {
    TESSERA_ASSIGN_OR_RETURN(RowReader codes, Plane("qs", {columns_}, kCodeTypes));
    TESSERA_ASSIGN_OR_RETURN(Scales d, Broadcast("d"));
    std::optional<Scales> m;
    if (planes_.Find("m") != nullptr) {
      TESSERA_ASSIGN_OR_RETURN(m, Broadcast("m"));
    }
    if (codes.dtype() == DType::kI8 && d.reader.dtype() == DType::kF16 && !d.one_row && !m &&
        columns_ % kShortBlock == 0)
      return Blocks(DType::kQ8_0, {d.reader, codes}, AssembleQ8_0, columns_ / kShortBlock);
    return Floats(std::move(codes), CodeKind::kNumbers, std::move(d), std::move(m),
                  /*offset_first=*/true);
  }

  const ParameterIndex& index_;
  const Planes& planes_;
  int64_t rows_;
  uint64_t columns_;
};

}  // namespace

const ParameterEntry* Planes::Find(std::string_view plane) const {
  for (const auto& [name, entry] : entries)
    if (name == plane) return entry;
  return nullptr;
}

Result<MadeRows> OpenPlanes(const ParameterIndex& index, const Planes& planes) {
  return PlaneOpener(index, planes).Open();
}

}  // namespace tessera::formats::irpa
