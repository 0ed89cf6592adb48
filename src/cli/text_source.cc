// SPDX-License-Identifier: Apache-2.0
#include "cli/text_source.h"

#include <fmt/format.h>

#include "model/text_sources.h"

namespace tessera::cli {
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
  TESSERA_ASSIGN_OR_RETURN(const model::TokenizerSource source, model::OpenTokenizer(path));
  auto tokenizer = MakeTokenizer(source.tokenizer);
  if (!tokenizer.has_value()) return Fail(tokenizer.error().WithContext(path.string()));
  return tokenizer;
}

Result<std::string> ReadChatTemplateText(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(auto templates, model::OpenChatTemplates(path));
  if (templates.empty())
    return Fail(NotFound(
        fmt::format("{} has no chat template; name one with --template FILE", path.string())));
  return std::move(templates.front().text);
}

}  // namespace tessera::cli
