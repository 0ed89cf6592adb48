// SPDX-License-Identifier: Apache-2.0
#include "formats/parameter_index.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"
#include "formats/limits.h"

namespace tessera::formats {

std::string_view FormatName(Format format) {
  switch (format) {
    case Format::kGguf:
      return "GGUF";
    case Format::kSafetensors:
      return "safetensors";
    case Format::kIrpa:
      return "IRPA";
  }
  return "unknown";
}

const ParameterEntry* ParameterIndex::Find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &entries_[at->second];
}

const Metadata& ParameterIndex::metadata() const {
  static const Metadata empty;
  return files_.empty() ? empty : files_.front().metadata;
}

tensor::TensorView ParameterIndex::View(const ParameterEntry& entry) const {
  TESSERA_CHECK(!entry.splat.has_value() && entry.rows == nullptr);
  TESSERA_CHECK(entry.file < files_.size());
  return {entry.dtype, entry.shape, files_[entry.file].bytes.subspan(entry.offset, entry.bytes)};
}

void ParameterIndex::DoneWith(const ParameterEntry& entry, uint64_t offset, uint64_t size) const {
  const SourceFile& file = files_[entry.file];
  if (file.mapping != nullptr && !entry.splat && entry.rows == nullptr)
    file.mapping->DoneWith(entry.offset + offset, size);
}

Result<std::vector<std::byte>> ParameterIndex::Materialise(const ParameterEntry& entry) const {
  if (entry.rows != nullptr) {
    std::vector<std::byte> bytes(entry.bytes);
    TESSERA_RETURN_IF_ERROR(
        entry.rows->MakeRows(0, entry.shape.rows(), bytes).WithContext(entry.name));
    return bytes;
  }
  if (!entry.splat.has_value()) {
    const ByteSpan bytes = View(entry).bytes;
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  if (entry.bytes > kMaxSplatBytes)
    return Fail(
        ResourceExhausted(fmt::format("splat {} stands for {} bytes, more than the limit of {}",
                                      entry.name, entry.bytes, kMaxSplatBytes)));
  std::vector<std::byte> bytes(entry.bytes);
  const size_t pattern = entry.splat->pattern_bytes;  // Divides the length.
  for (size_t i = 0; i < bytes.size(); i += pattern)
    std::memcpy(&bytes[i], entry.splat->pattern.data(), pattern);
  return bytes;
}

uint64_t ParameterIndex::total_bytes() const {
  uint64_t total = 0;
  for (const ParameterEntry& entry : entries_)
    if (AddOverflows(total, entry.bytes, &total)) return ~uint64_t{0};
  return total;
}

Status ParameterIndex::CheckIntact() const {
  for (const SourceFile& file : files_)
    if (file.mapping != nullptr) TESSERA_RETURN_IF_ERROR(file.mapping->CheckIntact());
  return {};
}

uint32_t ParameterIndex::AddFile(SourceFile file) {
  if (file.mapping != nullptr) file.bytes = file.mapping->bytes();
  files_.push_back(std::move(file));
  return static_cast<uint32_t>(files_.size() - 1);
}

Status ParameterIndex::Add(ParameterEntry entry, bool allow_duplicates) {
  TESSERA_CHECK(entry.file < files_.size());
  const auto [at, is_new] = by_name_.emplace(entry.name, entries_.size());
  if (!is_new && !allow_duplicates)
    return AlreadyExists(fmt::format("tensor {} occurs twice, expected once", entry.name));
  entries_.push_back(std::move(entry));
  return {};
}

Status ParameterIndex::Join(ParameterIndex other) {
  const auto first_file = static_cast<uint32_t>(files_.size());
  for (const ParameterEntry& entry : other.entries_)
    if (const ParameterEntry* mine = Find(entry.name))
      return AlreadyExists(fmt::format("tensor {} is in {} and in {}", entry.name,
                                       files_[mine->file].path.string(),
                                       other.files_[entry.file].path.string()));
  for (SourceFile& file : other.files_) files_.push_back(std::move(file));
  for (ParameterEntry& entry : other.entries_) {
    entry.file += first_file;
    TESSERA_RETURN_IF_ERROR(Add(std::move(entry), /*allow_duplicates=*/true));
  }
  return {};
}

}  // namespace tessera::formats
