// SPDX-License-Identifier: Apache-2.0
#include "formats/imatrix/reader.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string_view>

#include "formats/gguf/reader.h"
#include "formats/limits.h"
#include "formats/printable.h"
#include "tensor/convert.h"

namespace tessera::formats::imatrix {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

/// Means from sums; the matrix is left out where nothing was counted.
Status Add(std::string_view name, std::span<const float> sums, float calls, Importances* all) {
  std::vector<float> means(sums.size());
  double total = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!std::isfinite(sums[i]) || sums[i] < 0)
      return InvalidArgument(fmt::format("matrix {}: input {} is {}, expected a finite sum >= 0",
                                         Printable(name), i, sums[i]));
    means[i] = calls > 0 ? sums[i] / calls : sums[i];
    if (!std::isfinite(means[i]))
      return InvalidArgument(fmt::format("matrix {}: input {} is {} over {} calls, no finite mean",
                                         Printable(name), i, sums[i], calls));
    total += double{means[i]};
  }
  if (total == 0) return {};  // Never called, or too little to tell inputs apart.
  if (!all->emplace(name, std::move(means)).second)
    return InvalidArgument(fmt::format("matrix {} occurs twice", Printable(name)));
  return {};
}

Result<int32_t> ReadNumber(ByteReader* reader, std::string_view field, int64_t low, int64_t high) {
  const uint64_t at = reader->offset();
  TESSERA_ASSIGN_OR_RETURN(const int32_t value, reader->Read<int32_t>(field));
  if (value < low || value > high)
    return Fail(InvalidArgument(
        fmt::format("offset {}: {} is {}, expected {} to {}", at, field, value, low, high)));
  return value;
}

Result<std::string> ReadText(ByteReader* reader, std::string_view field) {
  TESSERA_ASSIGN_OR_RETURN(const int32_t length,
                           ReadNumber(reader, field, 0, static_cast<int64_t>(kMaxTensorNameBytes)));
  TESSERA_ASSIGN_OR_RETURN(const ByteSpan bytes,
                           reader->ReadBytes(static_cast<uint64_t>(length), field));
  return std::string(AsText(bytes));
}

Status ReadMatrix(ByteReader* reader, Importances* all) {
  TESSERA_ASSIGN_OR_RETURN(const std::string name, ReadText(reader, "a matrix's name"));
  TESSERA_ASSIGN_OR_RETURN(const int32_t calls, reader->Read<int32_t>("a matrix's calls"));
  TESSERA_ASSIGN_OR_RETURN(const int32_t count,
                           ReadNumber(reader, "a matrix's inputs", 1, INT32_MAX));
  TESSERA_ASSIGN_OR_RETURN(
      const ByteSpan bytes,
      reader->ReadBytes(static_cast<uint64_t>(count) * sizeof(float), "a matrix's sums"));
  std::vector<float> sums(static_cast<size_t>(count));
  std::memcpy(sums.data(), bytes.data(), bytes.size());
  return Add(name, sums, static_cast<float>(calls), all);
}

Result<Importances> ReadOld(ByteSpan bytes) {
  ByteReader reader(bytes);
  Importances all;
  TESSERA_ASSIGN_OR_RETURN(const int32_t count, ReadNumber(&reader, "the count of matrices", 1,
                                                           static_cast<int64_t>(kMaxTensors)));
  for (int32_t i = 0; i < count; ++i) TESSERA_RETURN_IF_ERROR(ReadMatrix(&reader, &all));
  if (reader.remaining() == 0) return all;  // What follows is newer than the form.
  TESSERA_RETURN_IF_ERROR(StatusOf(reader.Read<int32_t>("the last chunk")));
  if (reader.remaining() == 0) return all;
  TESSERA_RETURN_IF_ERROR(StatusOf(ReadText(&reader, "the data set's name")));
  if (reader.remaining() == 0) return all;
  return Fail(InvalidArgument(
      fmt::format("offset {}: {} bytes follow the end", reader.offset(), reader.remaining())));
}

Result<std::vector<float>> Floats(const ParameterIndex& index, const ParameterEntry& entry) {
  if (entry.dtype != tensor::DType::kF32)
    return Fail(InvalidArgument(fmt::format("tensor {} is {}, expected F32", Printable(entry.name),
                                            tensor::Name(entry.dtype))));
  std::vector<float> values(entry.bytes / sizeof(float));
  TESSERA_RETURN_IF_ERROR(tensor::ToFloat(entry.dtype, index.View(entry).bytes, values));
  return values;
}

Result<Importances> ReadGguf(ByteSpan bytes, const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(const ParameterIndex index, gguf::Parse(bytes, path));
  Importances all;
  for (const ParameterEntry& entry : index.entries()) {
    std::string_view name = entry.name;
    if (!name.ends_with(kSums)) continue;
    name.remove_suffix(kSums.size());
    const ParameterEntry* counts = index.Find(fmt::format("{}{}", name, kCounts));
    if (counts == nullptr)
      return Fail(InvalidArgument(
          fmt::format("matrix {} has no tensor {}{}", Printable(name), Printable(name), kCounts)));
    TESSERA_ASSIGN_OR_RETURN(const std::vector<float> calls, Floats(index, *counts));
    // One count for a matrix; several are those of a mixture's experts, which are kept as sums.
    const float divisor = calls.size() == 1 ? calls.front() : 0.0F;
    if (calls.size() == 1 && !(divisor > 0)) continue;  // Never called.
    TESSERA_ASSIGN_OR_RETURN(const std::vector<float> sums, Floats(index, entry));
    TESSERA_RETURN_IF_ERROR(Add(name, sums, divisor, &all));
  }
  if (all.empty())
    return Fail(InvalidArgument(
        fmt::format("no tensor NAME{} with counts: this GGUF is no importance matrix", kSums)));
  return all;
}

}  // namespace

Result<Importances> Parse(ByteSpan bytes, const std::filesystem::path& path) {
  uint32_t magic = 0;
  if (bytes.size() >= sizeof(magic)) std::memcpy(&magic, bytes.data(), sizeof(magic));
  if (magic == gguf::kMagic) {
    Result<Importances> all = ReadGguf(bytes, path);
    // The GGUF reader's errors name the file already.
    if (all.has_value() || all.error().ToString().contains(path.string())) return all;
    return Fail(all.error().WithContext(path.string()));
  }
  Result<Importances> all = ReadOld(bytes);
  if (!all.has_value()) return Fail(all.error().WithContext(path.string()));
  return all;
}

}  // namespace tessera::formats::imatrix
