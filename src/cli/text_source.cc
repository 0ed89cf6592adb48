// SPDX-License-Identifier: Apache-2.0
#include "cli/text_source.h"

#include <fmt/format.h>

#include "cli/terminal.h"

#include "base/file.h"
#include "bundle/bundle.h"
#include "model/text_sources.h"
#include "text/tokenizer_table.h"

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

namespace {

/// A bundle's table; null where it has none or, with a warning, one that cannot be used although
/// there is a tokenizer.json to read instead.
Result<std::shared_ptr<const text::Tokenizer>> ReadTable(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / bundle::kTokenizerTableFile;
  if (!bundle::IsBundle(folder) || !IsPresent(path)) return nullptr;
  auto tokenizer = text::OpenTokenizerTable(path);
  if (tokenizer.has_value() || !IsPresent(folder / bundle::kTokenizerFile)) return tokenizer;
  Note(
      "warning: {}; reading {} instead, which takes longer (remove the bundle to have it made "
      "anew)\n",
      tokenizer.error().ToString(), bundle::kTokenizerFile);
  return nullptr;
}

}  // namespace

Result<std::shared_ptr<const text::Tokenizer>> ReadTokenizer(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(auto table, ReadTable(path));
  if (table != nullptr) return table;
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
