// SPDX-License-Identifier: Apache-2.0
#include "formats/open.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "formats/gguf/split.h"
#include "formats/irpa/dataset.h"
#include "formats/irpa/reader.h"
#include "formats/safetensors/reader.h"
#include "formats/safetensors/sharded.h"

namespace tessera::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

std::optional<Format> FormatByExtension(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (extension == ".gguf") return Format::kGguf;
  if (extension == ".safetensors") return Format::kSafetensors;
  if (extension == ".irpa") return Format::kIrpa;
  return std::nullopt;
}

// A header length that the file can hold, and JSON's opening brace.
bool LooksLikeSafetensors(ByteSpan bytes) {
  if (bytes.size() < 9) return false;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length <= bytes.size() - 8 && bytes[8] == std::byte{'{'};
}

// Files of the folder that end with `suffix`, by name.
Result<std::vector<fs::path>> FilesEndingWith(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().ends_with(suffix)) files.push_back(at->path());
  if (error) return Fail(ErrnoStatus(error.value(), "listing", folder));
  std::ranges::sort(files);
  return files;
}

// All pieces of one split count as one candidate: the first.
void KeepFirstOfSplit(std::vector<fs::path>& files) {
  if (files.size() < 2) return;
  const std::string suffix = fmt::format("-00001-of-{:05}.gguf", files.size());
  if (files.front().filename().string().ends_with(suffix)) files.resize(1);
}

void DropRankFiles(std::vector<fs::path>& files) {
  std::erase_if(files, [](const fs::path& path) {
    return path.stem().extension().string().starts_with(".rank");
  });
}

Result<fs::path> ChooseInFolder(const fs::path& folder) {
  for (const std::string_view suffix : {kIndexSuffix, std::string_view(".safetensors"),
                                        std::string_view(".gguf"), std::string_view(".irpa")}) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<fs::path> files, FilesEndingWith(folder, suffix));
    if (suffix == ".gguf") KeepFirstOfSplit(files);
    if (suffix == ".irpa") DropRankFiles(files);
    if (files.size() == 1) return files.front();
    if (files.size() > 1) {
      std::vector<std::string> names;
      for (const fs::path& file : files) names.push_back(file.filename().string());
      if (names.size() > 8) names.resize(8);
      return Fail(InvalidArgument(fmt::format("{} holds {} files *{} ({}); name the one to open",
                                              folder.string(), files.size(), suffix,
                                              fmt::join(names, ", "))));
    }
  }
  return Fail(
      NotFound(fmt::format("{} holds no *{}, *.safetensors, *.gguf or *.irpa: "
                           "put the weights there, or name another folder",
                           folder.string(), kIndexSuffix)));
}

}  // namespace

Result<Format> DetectFormat(ByteSpan bytes, const fs::path& path) {
  const std::string_view start = AsText(bytes.first(std::min<size_t>(bytes.size(), 4)));
  if (start == "GGUF") return Format::kGguf;
  if (start == "IRPA") return Format::kIrpa;
  if (LooksLikeSafetensors(bytes)) return Format::kSafetensors;
  if (const auto format = FormatByExtension(path); format.has_value()) return *format;
  return Fail(InvalidArgument(fmt::format(
      "{}: offset 0: neither GGUF nor IRPA nor safetensors (a header length and a JSON object)",
      path.string())));
}

Result<ParameterIndex> Open(const fs::path& path, bool with_ranks) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    TESSERA_ASSIGN_OR_RETURN(const fs::path chosen, ChooseInFolder(path));
    return Open(chosen, with_ranks);
  }
  if (path.filename().string().ends_with(kIndexSuffix)) return safetensors::OpenSharded(path);
  TESSERA_ASSIGN_OR_RETURN(auto mapping, MappedFile::Open(path));
  TESSERA_ASSIGN_OR_RETURN(const Format format, DetectFormat(mapping->bytes(), path));
  switch (format) {
    case Format::kGguf:
      return gguf::OpenWithSplits(path);
    case Format::kSafetensors:
      return safetensors::Open(std::move(mapping));
    case Format::kIrpa:
      break;
  }
  return with_ranks ? irpa::OpenWithRanks(path) : irpa::Open(std::move(mapping));
}

Result<ParameterIndex> OpenAll(std::span<const fs::path> paths) {
  ParameterIndex index;
  for (const fs::path& path : paths) {
    TESSERA_ASSIGN_OR_RETURN(ParameterIndex next, Open(path));
    TESSERA_RETURN_IF_ERROR(index.Join(std::move(next)));
  }
  return index;
}

}  // namespace tessera::formats
