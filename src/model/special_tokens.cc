// SPDX-License-Identifier: Apache-2.0
#include "model/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/key_reader.h"
#include "model/limits.h"

namespace tessera::model {
namespace {

/// Appends what is not there yet.
Status AddEos(std::span<const int64_t> ids, int64_t vocab_size, std::string_view where,
              SpecialTokens& tokens) {
  for (const int64_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      return InvalidArgument(
          fmt::format("{}: token id {}, expected 0 to {}", where, id, vocab_size - 1));
    }
    const bool is_new =
        std::find(tokens.eos_ids.begin(), tokens.eos_ids.end(), id) == tokens.eos_ids.end();
    if (!is_new) continue;
    if (tokens.eos_ids.size() == kMaxEosIds) {
      return ResourceExhausted(fmt::format("{}: more than {} end tokens", where, kMaxEosIds));
    }
    tokens.eos_ids.push_back(id);
  }
  return {};
}

Status AddFile(const json::Object* file, int64_t vocab_size, std::string_view where,
               SpecialTokens& tokens) {
  if (file == nullptr) return {};
  KeyReader keys(*file);
  Result<std::vector<int64_t>> eos = keys.IntOrInts("eos_token_id", kMaxEosIds);
  if (!eos.has_value()) return std::move(eos).error().WithContext(std::string(where));
  TESSERA_RETURN_IF_ERROR(AddEos(*eos, vocab_size, where, tokens));
  // A list of bos or pad tokens occurs too; the first is used.
  TESSERA_ASSIGN_OR_RETURN(const auto bos, keys.IntOrInts("bos_token_id", kMaxEosIds));
  if (!bos.empty() && bos[0] >= 0 && bos[0] < vocab_size && !tokens.bos_id) tokens.bos_id = bos[0];
  TESSERA_ASSIGN_OR_RETURN(const auto pad, keys.IntOrInts("pad_token_id", kMaxEosIds));
  // Llama 2 repositories have -1 here, or an id that the table lacks: no padding token.
  if (!pad.empty() && pad[0] >= 0 && pad[0] < vocab_size && !tokens.pad_id) tokens.pad_id = pad[0];
  return {};
}

/// A token's text: a string, or an object with "content". Empty when absent.
Result<std::string> TokenText(const json::Object& config, std::string_view key) {
  const json::Value* value = json::Find(config, key);
  if (value == nullptr) return std::string();
  if (const json::Object* token = value->if_object()) return json::NeedString(*token, "content");
  return json::GetString(config, key, "");
}

/// The id that tokenizer_config.json's added_tokens_decoder ({"2": {"content": "</s>"}}) gives.
std::optional<int64_t> FindInDecoder(const json::Object& config, std::string_view text) {
  const json::Value* decoder = json::Find(config, "added_tokens_decoder");
  if (decoder == nullptr || !decoder->is_object()) return std::nullopt;
  for (const auto& [key, token] : decoder->get_object()) {
    const json::Object* object = token.if_object();
    const json::Value* content = object == nullptr ? nullptr : json::Find(*object, "content");
    if (content == nullptr || !content->is_string() || content->get_string() != text) continue;
    int64_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error == std::errc() && end == key.data() + key.size()) return id;
  }
  return std::nullopt;
}

/// The id that tokenizer.json gives: among its added tokens, else in the model's vocabulary.
Result<std::optional<int64_t>> FindInTokenizer(const std::string& text, std::string_view token) {
  const json::Limits limits{
      .max_bytes = kMaxTokenizerBytes, .max_depth = 64, .max_keys = 4u << 20, .unique_keys = false};
  TESSERA_ASSIGN_OR_RETURN(const json::Value root, json::Parse(text, limits, "tokenizer.json"));
  if (!root.is_object()) return std::nullopt;
  const json::Value* added = json::Find(root.get_object(), "added_tokens");
  if (added != nullptr && added->is_array()) {
    for (const json::Value& item : added->get_array()) {
      if (!item.is_object()) continue;
      TESSERA_ASSIGN_OR_RETURN(const std::string content,
                               json::GetString(item.get_object(), "content", ""));
      if (content == token) return json::NeedInt(item.get_object(), "id");
    }
  }
  const json::Value* model = json::Find(root.get_object(), "model");
  if (model == nullptr || !model->is_object()) return std::nullopt;
  const json::Value* vocab = json::Find(model->get_object(), "vocab");
  if (vocab == nullptr || !vocab->is_object()) return std::nullopt;
  const json::Value* id = json::Find(vocab->get_object(), token);
  if (id == nullptr || !id->is_int64()) return std::nullopt;
  return id->get_int64();
}

/// The tokenizer's own eos, which its config names by text only.
Status AddTokenizerEos(const RepositoryJson& files, int64_t vocab_size, SpecialTokens& tokens) {
  if (tokens.eos_text.empty()) return {};
  std::optional<int64_t> id = FindInDecoder(*files.tokenizer_config, tokens.eos_text);
  if (!id && files.find_token) {
    id = files.find_token(tokens.eos_text);
  } else if (!id && files.tokenizer_json != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(id, FindInTokenizer(*files.tokenizer_json, tokens.eos_text));
  }
  if (!id) {
    return InvalidArgument(
        fmt::format("tokenizer_config.json: eos_token '{}' is in no vocabulary", tokens.eos_text));
  }
  return AddEos(std::span(&*id, 1), vocab_size, "tokenizer_config.json", tokens);
}

bool IsEndOfTurn(std::string_view text) {
  static constexpr std::string_view kSpellings[] = {
      "</s>",       "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>",
      "<|eom_id|>", "<|im_end|>",    "<|end|>",         "<end_of_turn>",
  };
  return std::find(std::begin(kSpellings), std::end(kSpellings), text) != std::end(kSpellings);
}

}  // namespace

Result<SpecialTokens> ReadHfSpecialTokens(const RepositoryJson& files, int64_t vocab_size) {
  SpecialTokens tokens;
  TESSERA_RETURN_IF_ERROR(AddFile(files.config, vocab_size, "config.json", tokens));
  TESSERA_RETURN_IF_ERROR(AddFile(files.generation, vocab_size, "generation_config.json", tokens));
  if (files.tokenizer_config != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(tokens.bos_text, TokenText(*files.tokenizer_config, "bos_token"));
    TESSERA_ASSIGN_OR_RETURN(tokens.eos_text, TokenText(*files.tokenizer_config, "eos_token"));
    TESSERA_RETURN_IF_ERROR(AddTokenizerEos(files, vocab_size, tokens));
  }
  return tokens;
}

Result<SpecialTokens> ReadGgufSpecialTokens(const formats::Metadata& metadata,
                                            const GgufTokenizer& tokenizer) {
  SpecialTokens tokens;
  const auto vocab_size = static_cast<int64_t>(tokenizer.tokens.size());
  const auto read = [&](std::string_view name) -> Result<std::optional<int64_t>> {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    if (metadata.Find(key) == nullptr) return std::nullopt;
    TESSERA_ASSIGN_OR_RETURN(const int64_t id, metadata.Int(key));
    if (id >= 0 && id < vocab_size) return id;
    return Fail(
        InvalidArgument(fmt::format("'{}' is {}, expected 0 to {}", key, id, vocab_size - 1)));
  };
  TESSERA_ASSIGN_OR_RETURN(tokens.bos_id, read("bos"));
  TESSERA_ASSIGN_OR_RETURN(tokens.pad_id, read("padding"));
  for (const std::string_view name : {"eos", "eot", "eom"}) {
    TESSERA_ASSIGN_OR_RETURN(const std::optional<int64_t> id, read(name));
    if (!id) continue;
    if (tokens.eos_text.empty()) tokens.eos_text = tokenizer.tokens[static_cast<size_t>(*id)];
    TESSERA_RETURN_IF_ERROR(AddEos(std::span(&*id, 1), vocab_size, name, tokens));
  }
  constexpr int32_t kControl = 3;  // ggml's token type.
  for (size_t i = 0; i < tokenizer.token_types.size() && i < tokenizer.tokens.size(); ++i) {
    if (tokenizer.token_types[i] != kControl || !IsEndOfTurn(tokenizer.tokens[i])) continue;
    const auto id = static_cast<int64_t>(i);
    TESSERA_RETURN_IF_ERROR(AddEos(std::span(&id, 1), vocab_size, "vocabulary", tokens));
  }
  if (tokens.bos_id) tokens.bos_text = tokenizer.tokens[static_cast<size_t>(*tokens.bos_id)];
  return tokens;
}

}  // namespace tessera::model
