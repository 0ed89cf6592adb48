// SPDX-License-Identifier: Apache-2.0
#include "formats/npy/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "formats/limits.h"

namespace tessera::formats::npy {
namespace {

using tensor::DType;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kAlignment = 64;

struct Descr {
  std::string_view name;
  DType dtype;
};
constexpr Descr kDescrs[] = {{"<f8", DType::kF64}, {"<f4", DType::kF32}, {"<f2", DType::kF16},
                             {"<i8", DType::kI64}, {"<i4", DType::kI32}, {"<i2", DType::kI16},
                             {"|i1", DType::kI8},  {"<u8", DType::kU64}, {"<u4", DType::kU32},
                             {"<u2", DType::kU16}, {"|u1", DType::kU8},  {"|b1", DType::kBool}};

std::optional<DType> FindDescr(std::string_view name) {
  for (const Descr& descr : kDescrs)
    if (descr.name == name) return descr.dtype;
  return std::nullopt;
}

/// The header's literal: as much of Python as NumPy writes.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  /// Skips spaces, then takes `token` if it is next.
  bool Take(std::string_view token) {
    SkipSpaces();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  std::optional<std::string_view> Quoted() {
    SkipSpaces();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }
  std::optional<int64_t> Number() {
    SkipSpaces();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }
  bool AtEnd() {
    SkipSpaces();
    return text_.empty();
  }

 private:
  void SkipSpaces() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n'))
      text_.remove_prefix(1);
  }
  std::string_view text_;
};

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

/// "(1, 128)", "(3,)", "()".
std::optional<std::vector<int64_t>> ReadTuple(Literal* literal) {
  std::vector<int64_t> dims;
  if (!literal->Take("(")) return std::nullopt;
  while (!literal->Take(")")) {
    const auto number = literal->Number();
    if (!number || dims.size() == static_cast<size_t>(kMaxRank)) return std::nullopt;
    dims.push_back(*number);
    if (literal->Take(",")) continue;
    if (!literal->Take(")")) return std::nullopt;
    break;
  }
  return dims;
}

bool ReadMember(std::string_view key, Literal* literal, Header* header) {
  if (key == "descr" && !header->descr) {
    const auto descr = literal->Quoted();
    if (descr) header->descr = std::string(*descr);
    return descr.has_value();
  }
  if (key == "fortran_order" && !header->fortran_order) {
    const bool yes = literal->Take("True");
    if (!yes && !literal->Take("False")) return false;
    header->fortran_order = yes;
    return true;
  }
  if (key == "shape" && !header->shape) {
    header->shape = ReadTuple(literal);
    return header->shape.has_value();
  }
  return false;
}

std::optional<Header> ReadHeader(std::string_view text) {
  Literal literal(text);
  Header header;
  if (!literal.Take("{")) return std::nullopt;
  while (!literal.Take("}")) {
    const auto key = literal.Quoted();
    if (!key || !literal.Take(":") || !ReadMember(*key, &literal, &header)) return std::nullopt;
    if (literal.Take(",")) continue;
    if (!literal.Take("}")) return std::nullopt;
    break;
  }
  const bool whole = header.descr && header.fortran_order && header.shape && literal.AtEnd();
  return whole ? std::optional(std::move(header)) : std::nullopt;
}

Result<Array> Parse(ByteSpan bytes) {
  ByteReader reader(bytes);
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan magic, reader.ReadBytes(kMagic.size(), "magic"));
  if (AsText(magic) != kMagic) return Fail(DataLoss("offset 0: no NPY file: wrong magic"));
  TESSERA_ASSIGN_OR_RETURN(const auto major, reader.Read<uint8_t>("version"));
  TESSERA_ASSIGN_OR_RETURN(const auto minor, reader.Read<uint8_t>("version"));
  if (major < 1 || major > 3 || minor != 0)
    return Fail(Unimplemented(fmt::format("NPY version {}.{}, expected 1.0 to 3.0", major, minor)));
  uint64_t length = 0;
  if (major == 1) {
    TESSERA_ASSIGN_OR_RETURN(length, reader.Read<uint16_t>("length of the header"));
  } else {
    TESSERA_ASSIGN_OR_RETURN(length, reader.Read<uint32_t>("length of the header"));
  }
  if (length > kMaxHeaderBytes)
    return Fail(ResourceExhausted(
        fmt::format("a header of {} bytes, at most {} are read", length, kMaxHeaderBytes)));
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan text, reader.ReadBytes(length, "header"));
  const auto header = ReadHeader(AsText(text));
  if (!header)
    return Fail(InvalidArgument(
        "the header is not {'descr': TYPE, 'fortran_order': False, 'shape': (...)}"));
  if (*header->fortran_order) return Fail(Unimplemented("Fortran order; save it in C order"));
  const auto dtype = FindDescr(*header->descr);
  if (!dtype)
    return Fail(Unimplemented(fmt::format("elements of type \"{:.20}\"", *header->descr)));
  Array array{*dtype, tensor::Shape(*header->shape), {}};
  TESSERA_ASSIGN_OR_RETURN(const int64_t elements, array.shape.Elements());
  TESSERA_ASSIGN_OR_RETURN(const uint64_t wanted,
                           tensor::RowBytes(*dtype, static_cast<uint64_t>(elements)));
  TESSERA_ASSIGN_OR_RETURN(array.bytes, reader.ReadBytes(wanted, "elements"));
  if (reader.remaining() != 0)
    return Fail(DataLoss(fmt::format("{} bytes after the elements", reader.remaining())));
  return array;
}

}  // namespace

Result<Array> Read(ByteSpan bytes, std::string_view where) {
  Result<Array> array = Parse(bytes);
  if (!array.has_value()) return Fail(array.error().WithContext(std::string(where)));
  return array;
}

Result<std::string> Write(DType dtype, const tensor::Shape& shape, ByteSpan elements) {
  std::string_view descr;
  for (const Descr& known : kDescrs)
    if (known.dtype == dtype) descr = known.name;
  if (descr.empty())
    return Fail(Unimplemented(fmt::format("NPY has no type {}", tensor::Name(dtype))));
  std::string dims;
  for (const int64_t dim : shape.dims()) dims += fmt::format("{}, ", dim);
  if (shape.rank() > 1) dims.resize(dims.size() - 2);
  if (shape.rank() == 1) dims.pop_back();
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  const size_t before = kMagic.size() + 2 + sizeof(uint16_t);
  header.append(kAlignment - 1 - (before + header.size()) % kAlignment, ' ');
  header += '\n';
  ByteWriter out;
  out.WriteText(kMagic);
  out.Write<uint8_t>(1);
  out.Write<uint8_t>(0);
  out.Write(static_cast<uint16_t>(header.size()));
  out.WriteText(header);
  out.WriteBytes(elements);
  return std::move(out).Take();
}

}  // namespace tessera::formats::npy
