// SPDX-License-Identifier: Apache-2.0
#include "model/text_sources.h"

#include <fmt/format.h>

#include "base/file.h"
#include "formats/irpa/dataset.h"
#include "formats/open.h"
#include "model/chat_templates.h"
#include "model/dataset_source.h"
#include "model/gguf_tokenizer.h"
#include "model/limits.h"

namespace tessera::model {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const fs::path& path) {
  std::error_code ignored;  // What cannot be examined is opened next, which says why.
  return fs::is_directory(path, ignored);
}

/// A dataset keeps a GGUF's metadata in its properties.
Result<formats::ParameterIndex> OpenWithMetadata(const fs::path& path) {
  TESSERA_ASSIGN_OR_RETURN(formats::ParameterIndex index, formats::Open(path));
  if (!formats::irpa::IsDataset(index)) return index;
  Result<formats::ParameterIndex> metadata = DatasetMetadata(index);
  if (!metadata.has_value()) return Fail(std::move(metadata).error().WithContext(path.string()));
  return metadata;
}

}  // namespace

Result<JsonFile> ReadJsonFile(const fs::path& path, uint64_t max_bytes) {
  JsonFile file;
  TESSERA_ASSIGN_OR_RETURN(file.text, ReadFile(path, max_bytes));
  TESSERA_ASSIGN_OR_RETURN(file.value,
                           json::Parse(file.text, {.max_bytes = max_bytes}, path.string()));
  if (file.value.is_object()) return file;
  return Fail(InvalidArgument(
      fmt::format("{} is {}, expected an object", path.string(), json::KindName(file.value))));
}

Result<JsonFile> ReadOptionalJsonFile(const fs::path& path, uint64_t max_bytes) {
  if (!IsPresent(path)) return JsonFile{};
  return ReadJsonFile(path, max_bytes);
}

Result<TokenizerSource> OpenTokenizer(const fs::path& path) {
  TokenizerSource source;
  const bool is_folder = IsFolder(path);
  const fs::path file = is_folder ? path / "tokenizer.json" : path;
  if (is_folder ? IsPresent(file) : path.extension() == ".json") {
    TESSERA_ASSIGN_OR_RETURN(std::string text, ReadFile(file, kMaxTokenizerBytes));
    source.tokenizer = JsonTokenizer{std::move(text)};
    return source;
  }
  TESSERA_ASSIGN_OR_RETURN(source.index, OpenWithMetadata(path));
  if (source.index.metadata().Find("tokenizer.ggml.model") == nullptr &&
      source.index.files().front().format != formats::Format::kGguf)
    return Fail(
        NotFound(fmt::format("{} has no tokenizer: expected a folder with tokenizer.json, "
                             "a GGUF, or a dataset made of one",
                             path.string())));
  Result<GgufTokenizer> tokenizer = ReadGgufTokenizer(source.index.metadata());
  if (!tokenizer.has_value()) return Fail(tokenizer.error().WithContext(path.string()));
  source.tokenizer = *std::move(tokenizer);
  return source;
}

Result<std::vector<NamedTemplate>> OpenChatTemplates(const fs::path& path) {
  // A folder is a GGUF's when it has the file but none of a repository's texts.
  const bool has_texts = IsFolder(path) && (IsPresent(path / "tokenizer_config.json") ||
                                            IsPresent(path / "tokenizer.json") ||
                                            IsPresent(path / "chat_template.jinja"));
  if (has_texts) {
    TESSERA_ASSIGN_OR_RETURN(
        const JsonFile config,
        ReadOptionalJsonFile(path / "tokenizer_config.json", kMaxTokenizerConfigBytes));
    return ReadHfChatTemplates(path, config.value.if_object());
  }
  TESSERA_ASSIGN_OR_RETURN(const auto index, OpenWithMetadata(path));
  return ReadGgufChatTemplates(index.metadata());
}

Result<std::string> ReadTemplateFile(const fs::path& path) {
  return ReadFile(path, kMaxTemplateFileBytes);
}

}  // namespace tessera::model
