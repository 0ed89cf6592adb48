// SPDX-License-Identifier: Apache-2.0
#include "cli/emit_dataset.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/terminal.h"

#include "base/file.h"
#include "compiler/dataset/emit.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

Status WriteIfAbsent(const fs::path& path, std::string_view text) {
  if (text.empty() || IsPresent(path)) return {};
  return WriteFileAtomic(path, text);
}

/// A GGUF's texts are in the dataset's properties.
Status WriteTexts(const fs::path& folder, const model::ModelSource& source) {
  const auto* tokenizer = std::get_if<model::JsonTokenizer>(&source.tokenizer);
  if (tokenizer == nullptr) return {};
  TESSERA_RETURN_IF_ERROR(WriteIfAbsent(folder / "tokenizer.json", tokenizer->json));
  for (const model::RepositoryFile& file : source.files)
    if (file.name != "config.json")  // The dataset's properties say it.
      TESSERA_RETURN_IF_ERROR(WriteIfAbsent(folder / file.name, file.text));
  if (source.chat_templates.empty()) return {};
  return WriteIfAbsent(folder / "chat_template.jinja", source.chat_templates.front().text);
}

}  // namespace

Status CheckDatasetTarget(const std::string& target) {
  const fs::path path(target);
  std::error_code error;
  const bool is_file = path.extension() == ".irpa";
  if (is_file && fs::is_directory(path, error))
    return FailedPrecondition(fmt::format(
        "{} is a folder; name a file that ends with .irpa, or a folder that does not", target));
  const fs::path folder = is_file ? path.parent_path() : path;
  if (is_file && !folder.empty() && !IsPresent(folder))
    return NotFound(fmt::format("the folder {} is not there; make it first", folder.string()));
  if (!folder.empty() && IsPresent(folder) && !fs::is_directory(folder, error))
    return FailedPrecondition(
        fmt::format("{} is no folder; name FILE.irpa or a folder", folder.string()));
  return {};
}

Status WriteDataset(const std::string& target, const std::string& name,
                    const model::ModelSource& source, int64_t ranks,
                    const compiler::ProgressFn& progress) {
  compiler::DatasetOptions options{target, ranks};
  const bool is_file = options.path.extension() == ".irpa";
  const fs::path folder = is_file ? options.path.parent_path() : options.path;
  if (!is_file) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return ErrnoStatus(error.value(), "making", folder);
    options.path = folder / fmt::format("{}.irpa", fs::path(name).filename().string());
  }
  auto report = compiler::EmitDataset(source, options, progress);
  if (!report.has_value()) return report.error().WithContext("--emit-dataset");
  if (!is_file) TESSERA_RETURN_IF_ERROR(WriteTexts(folder, source).WithContext("--emit-dataset"));
  for (const std::string& note : report->notes) Note("note: {}\n", note);
  Note("wrote {} ({} in {} file{})\n", options.path.string(), HumanBytes(report->bytes),
       report->files.size(), report->files.size() == 1 ? "" : "s");
  return {};
}

}  // namespace tessera::cli
