// SPDX-License-Identifier: Apache-2.0
#include "model/repository_texts.h"

#include "base/file.h"
#include "model/chat_templates.h"
#include "model/generation_defaults.h"
#include "model/limits.h"
#include "model/special_tokens.h"
#include "model/text_sources.h"

namespace tessera::model {

namespace fs = std::filesystem;

Result<json::Value> TakeJsonFile(const fs::path& folder, ModelSource& source, std::string_view name,
                                 uint64_t max_bytes, bool required) {
  const fs::path path = folder / name;
  TESSERA_ASSIGN_OR_RETURN(JsonFile file, required ? ReadJsonFile(path, max_bytes)
                                                   : ReadOptionalJsonFile(path, max_bytes));
  if (file.value.is_object()) source.files.push_back({std::string(name), std::move(file.text)});
  return std::move(file.value);
}

Status ReadRepositoryTexts(const fs::path& folder, const json::Object* config,
                           ModelSource& source) {
  TESSERA_ASSIGN_OR_RETURN(
      const json::Value generation,
      TakeJsonFile(folder, source, "generation_config.json", kMaxConfigBytes, false));
  TESSERA_ASSIGN_OR_RETURN(
      const json::Value tokenizer_config,
      TakeJsonFile(folder, source, "tokenizer_config.json", kMaxTokenizerConfigBytes, false));
  const fs::path tokenizer_path = folder / "tokenizer.json";
  if (!IsPresent(tokenizer_path))
    return NotFound(
        "there is no tokenizer.json, which holds the model's vocabulary (tokenizer.model is not "
        "read): put it there, or fetch the repository again");
  TESSERA_ASSIGN_OR_RETURN(TokenizerSource text, OpenTokenizer(tokenizer_path));
  const std::string& tokenizer = std::get<JsonTokenizer>(text.tokenizer).json;
  TESSERA_ASSIGN_OR_RETURN(source.special_tokens,
                           ReadHfSpecialTokens({.config = config,
                                                .generation = generation.if_object(),
                                                .tokenizer_config = tokenizer_config.if_object(),
                                                .tokenizer_json = &tokenizer},
                                               source.config.vocab_size));
  source.tokenizer = std::move(text.tokenizer);
  TESSERA_ASSIGN_OR_RETURN(source.chat_templates,
                           ReadHfChatTemplates(folder, tokenizer_config.if_object()));
  if (generation.is_object()) {
    TESSERA_ASSIGN_OR_RETURN(source.generation,
                             ReadHfGeneration(generation.get_object(), source.warnings));
  }
  return {};
}

}  // namespace tessera::model
