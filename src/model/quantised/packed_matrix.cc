// SPDX-License-Identifier: Apache-2.0
#include "model/quantised/packed_matrix.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "model/limits.h"
#include "tensor/convert.h"

namespace tessera::model {
namespace {

using formats::ParameterEntry;
using formats::ParameterIndex;
using tensor::DType;
using tensor::Shape;

/// A stored matrix of one element type. Rows are contiguous; elements are read wherever they lie.
struct Table {
  ByteSpan bytes;
  std::shared_ptr<const MappedFile> mapping;
  DType dtype = DType::kI32;
  int64_t columns = 0;

  uint32_t Word(int64_t row, int64_t column) const {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + (row * columns + column) * 4, sizeof(word));
    return word;
  }
  float Scale(int64_t row, int64_t column) const {
    const int64_t at = row * columns + column;
    if (dtype == DType::kF32) {
      float value = 0;
      std::memcpy(&value, bytes.data() + at * 4, sizeof(value));
      return value;
    }
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + at * 2, sizeof(half));
    return dtype == DType::kF16 ? tensor::HalfToFloat(half) : tensor::BFloat16ToFloat(half);
  }
};

std::string OneOf(std::initializer_list<DType> dtypes) {
  std::string names;
  for (const DType dtype : dtypes)
    names += fmt::format("{}{}", names.empty() ? "" : " or ", tensor::Name(dtype));
  return names;
}

constexpr std::initializer_list<DType> kWords = {DType::kI32, DType::kU32};
constexpr std::initializer_list<DType> kScales = {DType::kF16, DType::kBF16, DType::kF32};

/// Finds the tensors of one matrix.
class Tensors {
 public:
  Tensors(const ParameterIndex& index, const std::string& prefix)
      : index_(index), prefix_(prefix) {}

  bool Has(std::string_view suffix) const { return index_.Find(Name(suffix)) != nullptr; }
  std::string Name(std::string_view suffix) const { return prefix_ + std::string(suffix); }

  /// A matrix, or with `rank` 1 a vector as one row.
  Result<Table> Open(std::string_view suffix, std::initializer_list<DType> dtypes,
                     int rank = 2) const {
    const ParameterEntry* entry = index_.Find(Name(suffix));
    if (entry == nullptr) return Fail(InvalidArgument(fmt::format("{} is missing", Name(suffix))));
    if (entry->splat || entry->rows != nullptr)
      return Fail(InvalidArgument(fmt::format("{} has no bytes of its own", entry->name)));
    if (entry->shape.rank() != rank)
      return Fail(InvalidArgument(fmt::format("{} has shape {}, expected {} dimensions",
                                              entry->name, entry->shape.ToString(), rank)));
    if (std::ranges::find(dtypes, entry->dtype) == dtypes.end())
      return Fail(InvalidArgument(fmt::format("{} has type {}, expected {}", entry->name,
                                              tensor::Name(entry->dtype), OneOf(dtypes))));
    return Table{index_.View(*entry).bytes, index_.files()[entry->file].mapping, entry->dtype,
                 entry->shape.columns()};
  }
  Shape ShapeOf(std::string_view suffix) const { return index_.Find(Name(suffix))->shape; }

  Status WantShape(std::string_view suffix, const Shape& expected) const {
    if (ShapeOf(suffix) == expected) return {};
    return InvalidArgument(fmt::format("{} has shape {}, expected {}", Name(suffix),
                                       ShapeOf(suffix).ToString(), expected.ToString()));
  }

 private:
  const ParameterIndex& index_;
  const std::string& prefix_;
};

Status CheckSize(const std::string& name, int64_t rows, int64_t columns) {
  if (rows >= 1 && rows <= kMaxVocabulary && columns >= 1 && columns <= kMaxWidth) return {};
  return InvalidArgument(
      fmt::format("{} stands for a matrix of {} rows and {} columns, expected "
                  "up to {} and {}",
                  name, rows, columns, kMaxVocabulary, kMaxWidth));
}

/// Groups of `columns` inputs.
Result<int64_t> GroupsOf(const Quantisation& q, const std::string& name, int64_t columns) {
  const int64_t size = q.group_size.value_or(columns);
  if (columns % size == 0) return columns / size;
  return Fail(InvalidArgument(
      fmt::format("{} has {} inputs, which are no whole groups of {}", name, columns, size)));
}

/// Words along the other dimension hold `per_word` elements each.
Result<int64_t> WordsOf(const std::string& name, int64_t elements, int64_t per_word) {
  if (elements % per_word == 0) return elements / per_word;
  return Fail(
      InvalidArgument(fmt::format("{}: {} are no whole words of {}", name, elements, per_word)));
}

/// `suffix` holds the group of every column.
Result<std::vector<int32_t>> ReadGroupIndex(const Tensors& tensors, std::string_view suffix,
                                            int64_t columns, int64_t groups) {
  TESSERA_ASSIGN_OR_RETURN(const Table table, tensors.Open(suffix, kWords, 1));
  TESSERA_RETURN_IF_ERROR(tensors.WantShape(suffix, Shape{columns}));
  std::vector<int32_t> group_of(static_cast<size_t>(columns));
  // compressed-tensors begins with -1 everywhere and leaves it where the order is that of the
  // columns.
  const auto group_at = [&](int64_t i) { return static_cast<int32_t>(table.Word(0, i)); };
  bool in_order = true, never_set = true;
  for (int64_t i = 0; never_set && i < columns; ++i) never_set = group_at(i) == -1;
  if (never_set) return std::vector<int32_t>();
  for (int64_t i = 0; i < columns; ++i) {
    const int32_t group = group_at(i);
    if (group < 0 || group >= groups)
      return Fail(InvalidArgument(fmt::format("{} has group {} at column {}, expected 0 to {}",
                                              tensors.Name(suffix), group, i, groups - 1)));
    group_of[static_cast<size_t>(i)] = group;
    in_order = in_order && group == i / (columns / groups);
  }
  // Zeros alone mean the order of the columns, too: some writers leave them so.
  const bool unset = std::ranges::all_of(group_of, [](int32_t group) { return group == 0; });
  if (in_order || unset) group_of.clear();
  return group_of;
}

class GptqMatrix : public PackedMatrix {
 public:
  Status Open(const Tensors& tensors, const Quantisation& q) {
    bits_ = static_cast<int>(q.bits);
    per_word_ = 32 / q.bits;
    zero_shift_ = q.zeros_minus_one ? 1 : 0;
    TESSERA_ASSIGN_OR_RETURN(codes_, tensors.Open(".qweight", kWords));
    const Shape shape = tensors.ShapeOf(".qweight");
    TESSERA_RETURN_IF_ERROR(
        CheckSize(tensors.Name(".qweight"), shape[1], std::min(shape[0], kMaxWidth) * per_word_));
    rows_ = shape[1];
    columns_ = shape[0] * per_word_;
    TESSERA_ASSIGN_OR_RETURN(groups_, GroupsOf(q, tensors.Name(".qweight"), columns_));
    TESSERA_ASSIGN_OR_RETURN(scales_, tensors.Open(".scales", kScales));
    TESSERA_RETURN_IF_ERROR(tensors.WantShape(".scales", Shape{groups_, rows_}));
    scale_dtype_ = scales_.dtype;
    TESSERA_ASSIGN_OR_RETURN(const int64_t words,
                             WordsOf(tensors.Name(".qzeros"), rows_, per_word_));
    TESSERA_ASSIGN_OR_RETURN(zeros_, tensors.Open(".qzeros", kWords));
    TESSERA_RETURN_IF_ERROR(tensors.WantShape(".qzeros", Shape{groups_, words}));
    if (tensors.Has(".g_idx")) {
      TESSERA_ASSIGN_OR_RETURN(group_of_, ReadGroupIndex(tensors, ".g_idx", columns_, groups_));
    }
    return {};
  }

  void Codes(int64_t row, std::span<uint8_t> out) const override {
    const uint32_t mask = (1U << bits_) - 1;
    for (int64_t word = 0; word < columns_ / per_word_; ++word) {
      uint32_t bits = codes_.Word(word, row);
      for (int64_t i = 0; i < per_word_; ++i, bits >>= bits_)
        out[static_cast<size_t>(word * per_word_ + i)] = static_cast<uint8_t>(bits & mask);
    }
  }
  void Scales(int64_t row, std::span<float> out) const override {
    for (int64_t g = 0; g < groups_; ++g) out[static_cast<size_t>(g)] = scales_.Scale(g, row);
  }
  void Zeros(int64_t row, std::span<int32_t> out) const override {
    const uint32_t mask = (1U << bits_) - 1;
    const int64_t shift = row % per_word_ * bits_;
    for (int64_t g = 0; g < groups_; ++g)
      out[static_cast<size_t>(g)] =
          static_cast<int32_t>((zeros_.Word(g, row / per_word_) >> shift) & mask) + zero_shift_;
  }

 private:
  Table codes_, scales_, zeros_;
  int bits_ = 4;
  int64_t per_word_ = 8;
  int32_t zero_shift_ = 0;
};

class AwqMatrix : public PackedMatrix {
 public:
  Status Open(const Tensors& tensors, const Quantisation& q) {
    TESSERA_ASSIGN_OR_RETURN(codes_, tensors.Open(".qweight", kWords));
    const Shape shape = tensors.ShapeOf(".qweight");
    TESSERA_RETURN_IF_ERROR(CheckSize(tensors.Name(".qweight"),
                                      std::min(shape[1], kMaxVocabulary) * kPerWord, shape[0]));
    rows_ = shape[1] * kPerWord;
    columns_ = shape[0];
    TESSERA_ASSIGN_OR_RETURN(groups_, GroupsOf(q, tensors.Name(".qweight"), columns_));
    TESSERA_ASSIGN_OR_RETURN(scales_, tensors.Open(".scales", kScales));
    TESSERA_RETURN_IF_ERROR(tensors.WantShape(".scales", Shape{groups_, rows_}));
    scale_dtype_ = scales_.dtype;
    TESSERA_ASSIGN_OR_RETURN(zeros_, tensors.Open(".qzeros", kWords));
    return tensors.WantShape(".qzeros", Shape{groups_, shape[1]});
  }

  void Codes(int64_t row, std::span<uint8_t> out) const override {
    for (int64_t k = 0; k < columns_; ++k)
      out[static_cast<size_t>(k)] = static_cast<uint8_t>(Nibble(codes_, k, row));
  }
  void Scales(int64_t row, std::span<float> out) const override {
    for (int64_t g = 0; g < groups_; ++g) out[static_cast<size_t>(g)] = scales_.Scale(g, row);
  }
  void Zeros(int64_t row, std::span<int32_t> out) const override {
    for (int64_t g = 0; g < groups_; ++g)
      out[static_cast<size_t>(g)] = static_cast<int32_t>(Nibble(zeros_, g, row));
  }

 private:
  static constexpr int64_t kPerWord = 8;
  /// Nibble n of a word holds output 0 2 4 6 1 3 5 7 of its eight: the inverse of that.
  static uint32_t Nibble(const Table& table, int64_t at, int64_t row) {
    static constexpr std::array<int, 8> kPlace = {0, 4, 1, 5, 2, 6, 3, 7};
    const int place = kPlace[static_cast<size_t>(row % kPerWord)];
    return (table.Word(at, row / kPerWord) >> (4 * place)) & 0xf;
  }
  Table codes_, scales_, zeros_;
};

class CompressedMatrix : public PackedMatrix {
 public:
  Status Open(const Tensors& tensors, const Quantisation& q) {
    bits_ = static_cast<int>(q.bits);
    per_word_ = 32 / q.bits;
    TESSERA_ASSIGN_OR_RETURN(codes_, tensors.Open(".weight_packed", kWords));
    TESSERA_RETURN_IF_ERROR(ReadShape(tensors));
    const int64_t words = (columns_ + per_word_ - 1) / per_word_;
    TESSERA_RETURN_IF_ERROR(tensors.WantShape(".weight_packed", Shape{rows_, words}));
    TESSERA_ASSIGN_OR_RETURN(groups_, GroupsOf(q, tensors.Name(".weight_packed"), columns_));
    TESSERA_ASSIGN_OR_RETURN(scales_, tensors.Open(".weight_scale", kScales));
    TESSERA_RETURN_IF_ERROR(tensors.WantShape(".weight_scale", Shape{rows_, groups_}));
    scale_dtype_ = scales_.dtype;
    if (!q.symmetric) {
      TESSERA_ASSIGN_OR_RETURN(zeros_, tensors.Open(".weight_zero_point", kWords));
      TESSERA_RETURN_IF_ERROR(tensors.WantShape(
          ".weight_zero_point", Shape{(rows_ + per_word_ - 1) / per_word_, groups_}));
      has_zeros_ = true;
    }
    if (tensors.Has(".weight_g_idx")) {
      TESSERA_ASSIGN_OR_RETURN(group_of_,
                               ReadGroupIndex(tensors, ".weight_g_idx", columns_, groups_));
    }
    return {};
  }

  void Codes(int64_t row, std::span<uint8_t> out) const override {
    const uint32_t mask = (1U << bits_) - 1;
    for (int64_t k = 0; k < columns_; ++k)
      out[static_cast<size_t>(k)] =
          static_cast<uint8_t>((codes_.Word(row, k / per_word_) >> (k % per_word_ * bits_)) & mask);
  }
  void Scales(int64_t row, std::span<float> out) const override {
    for (int64_t g = 0; g < groups_; ++g) out[static_cast<size_t>(g)] = scales_.Scale(row, g);
  }
  void Zeros(int64_t row, std::span<int32_t> out) const override {
    const uint32_t mask = (1U << bits_) - 1;
    for (int64_t g = 0; g < groups_; ++g) {
      // Shifted like the codes, so that a zero of none is the middle code.
      out[static_cast<size_t>(g)] =
          has_zeros_ ? static_cast<int32_t>(
                           (zeros_.Word(row / per_word_, g) >> (row % per_word_ * bits_)) & mask)
                     : 1 << (bits_ - 1);
    }
  }

 private:
  Status ReadShape(const Tensors& tensors) {
    TESSERA_ASSIGN_OR_RETURN(const Table table,
                             tensors.Open(".weight_shape", {DType::kI64, DType::kI32}, 1));
    TESSERA_RETURN_IF_ERROR(tensors.WantShape(".weight_shape", Shape{2}));
    std::array<int64_t, 2> dims{};
    for (size_t i = 0; i < dims.size(); ++i) {
      if (table.dtype == DType::kI64) {
        std::memcpy(&dims[i], table.bytes.data() + i * 8, 8);
      } else {
        dims[i] = static_cast<int32_t>(table.Word(0, static_cast<int64_t>(i)));
      }
    }
    rows_ = dims[0];
    columns_ = dims[1];
    return CheckSize(tensors.Name(".weight_shape"), rows_, columns_);
  }

  Table codes_, scales_, zeros_;
  bool has_zeros_ = false;
  int bits_ = 4;
  int64_t per_word_ = 8;
};

template <class Matrix>
Result<std::shared_ptr<const PackedMatrix>> OpenAs(const Tensors& tensors, const Quantisation& q) {
  auto matrix = std::make_shared<Matrix>();
  TESSERA_RETURN_IF_ERROR(matrix->Open(tensors, q));
  return std::shared_ptr<const PackedMatrix>(std::move(matrix));
}

constexpr std::array<std::string_view, 4> kGptqSuffixes = {".qweight", ".qzeros", ".scales",
                                                           ".g_idx"};
constexpr std::array<std::string_view, 5> kCompressedSuffixes = {
    ".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_shape", ".weight_g_idx"};

}  // namespace

std::string_view CodesSuffix(QuantisationMethod method) {
  return method == QuantisationMethod::kPackedInts ? ".weight_packed" : ".qweight";
}

std::span<const std::string_view> PackedSuffixes(QuantisationMethod method) {
  if (method == QuantisationMethod::kPackedInts) return kCompressedSuffixes;
  return kGptqSuffixes;
}

Result<std::shared_ptr<const PackedMatrix>> OpenPackedMatrix(const ParameterIndex& index,
                                                             const std::string& prefix,
                                                             const Quantisation& quantisation) {
  const Tensors tensors(index, prefix);
  switch (quantisation.method) {
    case QuantisationMethod::kGptq:
      return OpenAs<GptqMatrix>(tensors, quantisation);
    case QuantisationMethod::kAwq:
      return OpenAs<AwqMatrix>(tensors, quantisation);
    case QuantisationMethod::kPackedInts:
      return OpenAs<CompressedMatrix>(tensors, quantisation);
    case QuantisationMethod::kFp8:
      break;
  }
  return Fail(Internal("FP8 has no packed codes"));
}

}  // namespace tessera::model
