// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/split.h"

#include <fmt/format.h>

#include "formats/gguf/reader.h"
#include "formats/limits.h"

namespace tessera::formats::gguf {
namespace {

constexpr std::string_view kCount = "split.count";
constexpr std::string_view kNumber = "split.no";
constexpr std::string_view kTensors = "split.tensors.count";

// Pieces in the set; 1 for a file that is no split.
Result<int64_t> SplitCount(const Metadata& metadata) {
  if (metadata.Find(kCount) == nullptr) return 1;
  TESSERA_ASSIGN_OR_RETURN(const int64_t count, metadata.Int(kCount));
  // Some writers say 0 for "not split".
  if (count < 0 || count > static_cast<int64_t>(kMaxGgufSplits))
    return Fail(InvalidArgument(
        fmt::format("metadata {} is {}, expected 0 to {}", kCount, count, kMaxGgufSplits)));
  return std::max<int64_t>(count, 1);
}

Result<ParameterIndex> OpenOne(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(auto mapping, MappedFile::Open(path));
  return Open(std::move(mapping));
}

// "model" of "model-00002-of-00005.gguf", given number and count from the metadata.
Result<std::string> Prefix(const std::filesystem::path& path, int64_t number, int64_t count) {
  const std::string name = path.filename().string();
  const std::string suffix = fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
  if (!name.ends_with(suffix))
    return Fail(InvalidArgument(
        fmt::format("{}: metadata says piece {} of {}, so its name should end with {}",
                    path.string(), number + 1, count, suffix)));
  return name.substr(0, name.size() - suffix.size());
}

Status CheckPiece(const Metadata& metadata, int64_t number, int64_t count) {
  TESSERA_ASSIGN_OR_RETURN(const int64_t its_number, metadata.Int(kNumber));
  TESSERA_ASSIGN_OR_RETURN(const int64_t its_count, metadata.Int(kCount));
  if (its_number == number && its_count == count) return {};
  return InvalidArgument(fmt::format("metadata says {} {} and {} {}, expected {} and {}", kNumber,
                                     its_number, kCount, its_count, number, count));
}

Status CheckTensorCount(const ParameterIndex& index) {
  if (index.metadata().Find(kTensors) == nullptr) return {};
  TESSERA_ASSIGN_OR_RETURN(const int64_t expected, index.metadata().Int(kTensors));
  const auto found = static_cast<int64_t>(index.entries().size());
  if (found == expected) return {};
  return DataLoss(fmt::format("metadata {} is {}, but the pieces hold {} tensors together",
                              kTensors, expected, found));
}

}  // namespace

Result<ParameterIndex> OpenWithSplits(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(ParameterIndex opened, OpenOne(path));
  auto count = SplitCount(opened.metadata());
  if (!count.has_value()) return Fail(count.error().WithContext(path.string()));
  if (*count == 1) return opened;
  auto number = opened.metadata().Int(kNumber);
  if (!number.has_value()) return Fail(number.error().WithContext(path.string()));
  TESSERA_ASSIGN_OR_RETURN(const std::string prefix, Prefix(path, *number, *count));

  ParameterIndex index;
  for (int64_t i = 0; i < *count; ++i) {
    const std::filesystem::path piece =
        path.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", prefix, i + 1, *count);
    Status joined = [&]() -> Status {
      TESSERA_ASSIGN_OR_RETURN(ParameterIndex next, OpenOne(piece));
      if (Status fits = CheckPiece(next.metadata(), i, *count); !fits.ok())
        return std::move(fits).WithContext(piece.string());
      return index.Join(std::move(next));
    }();
    if (!joined.ok())
      return Fail(std::move(joined).WithContext(
          fmt::format("piece {} of {} of a GGUF split", i + 1, *count)));
  }
  if (Status complete = CheckTensorCount(index); !complete.ok())
    return Fail(std::move(complete).WithContext(path.string()));
  return index;
}

}  // namespace tessera::formats::gguf
