// SPDX-License-Identifier: Apache-2.0
#include "cli/text_source.h"

#include <fmt/format.h>

#include "base/file.h"
#include "formats/open.h"
#include "model/chat_templates.h"
#include "model/gguf_tokenizer.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kMaxTokenizerBytes = 256u << 20;
constexpr uint64_t kMaxTokenizerConfigBytes = 32u << 20;

}  // namespace

Result<std::shared_ptr<const text::Tokenizer>> MakeTokenizer(
    const std::variant<model::JsonTokenizer, model::GgufTokenizer>& tokenizer) {
  if (const auto* json = std::get_if<model::JsonTokenizer>(&tokenizer))
    return text::Tokenizer::FromJson(json->json);
  const auto& gguf = std::get<model::GgufTokenizer>(tokenizer);
  text::GgufVocabulary vocabulary;
  vocabulary.model = gguf.model;
  vocabulary.pre = gguf.pre;
  vocabulary.model_name = gguf.model_name;
  vocabulary.tokens = gguf.tokens;
  vocabulary.scores = gguf.scores;
  vocabulary.token_types = gguf.token_types;
  vocabulary.merges = gguf.merges;
  vocabulary.precompiled_charsmap = gguf.precompiled_charsmap;
  vocabulary.bos_id = gguf.bos_id;
  vocabulary.eos_id = gguf.eos_id;
  vocabulary.eot_id = gguf.eot_id;
  vocabulary.unk_id = gguf.unk_id;
  vocabulary.pad_id = gguf.pad_id;
  vocabulary.add_bos = gguf.add_bos;
  vocabulary.add_eos = gguf.add_eos;
  vocabulary.add_space_prefix = gguf.add_space_prefix;
  vocabulary.remove_extra_whitespaces = gguf.remove_extra_whitespaces;
  return text::Tokenizer::FromGguf(vocabulary);
}

Result<std::shared_ptr<const text::Tokenizer>> ReadTokenizer(const std::filesystem::path& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  if (is_folder || path.extension() == ".json") {
    const std::filesystem::path file = is_folder ? path / "tokenizer.json" : path;
    TESSERA_ASSIGN_OR_RETURN(const std::string json, ReadFile(file, kMaxTokenizerBytes));
    auto tokenizer = text::Tokenizer::FromJson(json);
    if (!tokenizer.has_value()) return Fail(tokenizer.error().WithContext(file.string()));
    return tokenizer;
  }
  TESSERA_ASSIGN_OR_RETURN(const auto index, formats::Open(path));
  const auto gguf = model::ReadGgufTokenizer(index.metadata());
  if (!gguf.has_value()) return Fail(gguf.error().WithContext(path.string()));
  auto tokenizer = MakeTokenizer(*gguf);
  if (!tokenizer.has_value()) return Fail(tokenizer.error().WithContext(path.string()));
  return tokenizer;
}

Result<std::string> ReadChatTemplateText(const std::filesystem::path& path) {
  std::vector<model::NamedTemplate> templates;
  if (std::filesystem::is_directory(path)) {
    json::Value config;
    const std::filesystem::path file = path / "tokenizer_config.json";
    if (std::filesystem::exists(file)) {
      TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMaxTokenizerConfigBytes));
      TESSERA_ASSIGN_OR_RETURN(config, json::Parse(text, {.unique_keys = false}, file.string()));
    }
    TESSERA_ASSIGN_OR_RETURN(templates, model::ReadHfChatTemplates(path, config.if_object()));
  } else {
    TESSERA_ASSIGN_OR_RETURN(const auto index, formats::Open(path));
    TESSERA_ASSIGN_OR_RETURN(templates, model::ReadGgufChatTemplates(index.metadata()));
  }
  if (templates.empty())
    return Fail(NotFound(
        fmt::format("{} has no chat template; name one with --template FILE", path.string())));
  return std::move(templates.front().text);
}

}  // namespace tessera::cli
