// SPDX-License-Identifier: Apache-2.0
#include "model/open.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"
#include "formats/irpa/dataset.h"
#include "formats/open.h"
#include "model/chat_templates.h"
#include "model/dataset_source.h"
#include "model/families.h"
#include "model/generation_defaults.h"
#include "model/gguf_config.h"
#include "model/gguf_tokenizer.h"
#include "model/hf_config.h"
#include "model/limits.h"
#include "model/quantised/quantised_index.h"
#include "model/repository_texts.h"
#include "model/special_tokens.h"

namespace tessera::model {
namespace {

namespace fs = std::filesystem;

/// What config.json says of it, or a file beside it.
Result<std::optional<Quantisation>> OpenQuantisation(const fs::path& folder,
                                                     const json::Object& config,
                                                     ModelSource& source) {
  TESSERA_ASSIGN_OR_RETURN(std::optional<Quantisation> found, FindQuantisation(config));
  for (const QuantisationFile& file : QuantisationFiles()) {
    if (found) break;
    TESSERA_ASSIGN_OR_RETURN(const json::Value text,
                             TakeJsonFile(folder, source, file.name, kMaxConfigBytes, false));
    if (!text.is_object()) continue;
    Result<Quantisation> read = ReadQuantisationFile(text.get_object(), file);
    if (!read.has_value()) return Fail(std::move(read).error().WithContext(std::string(file.name)));
    found = *std::move(read);
  }
  return found;
}

/// A repository as Hugging Face has them; the weights are open already.
Status OpenRepository(const fs::path& folder, ModelSource& source) {
  TESSERA_ASSIGN_OR_RETURN(const json::Value config,
                           TakeJsonFile(folder, source, "config.json", kMaxConfigBytes, true));
  Result<ModelConfig> model = ReadHfConfig(config.get_object());
  if (!model.has_value()) return std::move(model).error().WithContext("config.json");
  source.config = *std::move(model);
  UseNamesOf(source.index, source.config);
  TESSERA_ASSIGN_OR_RETURN(const std::optional<Quantisation> quantisation,
                           OpenQuantisation(folder, config.get_object(), source));
  if (quantisation) {
    TESSERA_ASSIGN_OR_RETURN(
        source.index, OpenQuantised(source.index, *quantisation, source.config, source.warnings));
  }
  return ReadRepositoryTexts(folder, &config.get_object(), source);
}

Status OpenGguf(ModelSource& source) {
  TESSERA_ASSIGN_OR_RETURN(source.config, ReadGgufConfig(source.index));
  const formats::Metadata& metadata = source.index.metadata();
  TESSERA_ASSIGN_OR_RETURN(const GgufTokenizer tokenizer, ReadGgufTokenizer(metadata));
  TESSERA_ASSIGN_OR_RETURN(source.special_tokens, ReadGgufSpecialTokens(metadata, tokenizer));
  if (static_cast<int64_t>(tokenizer.tokens.size()) > source.config.vocab_size) {
    return InvalidArgument(fmt::format("the tokenizer has {} tokens, the embedding table {} rows",
                                       tokenizer.tokens.size(), source.config.vocab_size));
  }
  source.tokenizer = tokenizer;
  TESSERA_ASSIGN_OR_RETURN(source.chat_templates, ReadGgufChatTemplates(metadata));
  TESSERA_ASSIGN_OR_RETURN(source.generation, ReadGgufGeneration(metadata));
  return {};
}

}  // namespace

Result<ModelSource> OpenModel(const fs::path& path) {
  ModelSource source;
  source.path = path;
  TESSERA_ASSIGN_OR_RETURN(source.index, formats::Open(path, /*with_ranks=*/true));
  TESSERA_CHECK(!source.index.files().empty());
  std::error_code ignored;  // What cannot be examined is taken for a file.
  const fs::path folder = fs::is_directory(path, ignored) ? path : path.parent_path();
  // Many GGUF repositories have a config.json that says less than the file itself, or nothing.
  if (source.index.files().front().format == formats::Format::kGguf) {
    TESSERA_RETURN_IF_ERROR(OpenGguf(source).WithContext(path.string()));
    return source;
  }
  if (formats::irpa::IsDataset(source.index)) {
    TESSERA_RETURN_IF_ERROR(OpenDataset(folder, source).WithContext(path.string()));
    return source;
  }
  if (!IsPresent(folder / "config.json")) {
    return Fail(NotFound(fmt::format(
        "{} has no config.json: a model is a GGUF, a sharktank dataset, or a folder with "
        "config.json, tokenizer.json and weights",
        folder.string())));
  }
  TESSERA_RETURN_IF_ERROR(OpenRepository(folder, source).WithContext(folder.string()));
  return source;
}

}  // namespace tessera::model
