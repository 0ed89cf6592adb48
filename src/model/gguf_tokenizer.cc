// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_tokenizer.h"

#include <fmt/format.h>

namespace tessera::model {
namespace {

/// An array that must be of that type if it is there, with one element a token if `parallel`.
template <class T>
Status ReadArray(const formats::Metadata& metadata, std::string_view key, size_t tokens,
                 bool parallel, std::span<const T>& out) {
  const formats::MetadataValue* value = metadata.Find(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<std::vector<T>>(value);
  if (array == nullptr) return InvalidArgument(fmt::format("'{}' has another type", key));
  if (parallel && array->size() != tokens) {
    return InvalidArgument(
        fmt::format("'{}' has {} entries, expected {}", key, array->size(), tokens));
  }
  out = *array;
  return {};
}

Status ReadId(const formats::Metadata& metadata, std::string_view name, int64_t& id) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  if (metadata.Find(key) == nullptr) return {};
  TESSERA_ASSIGN_OR_RETURN(id, metadata.Int(key));
  return {};
}

Status ReadFlag(const formats::Metadata& metadata, std::string_view name,
                std::optional<bool>& flag) {
  const std::string key = fmt::format("tokenizer.ggml.{}", name);
  if (metadata.Find(key) == nullptr) return {};
  TESSERA_ASSIGN_OR_RETURN(flag, metadata.Bool(key));
  return {};
}

}  // namespace

Result<GgufTokenizer> ReadGgufTokenizer(const formats::Metadata& metadata) {
  GgufTokenizer t;
  TESSERA_ASSIGN_OR_RETURN(t.model, metadata.Text("tokenizer.ggml.model"));
  if (metadata.Find("tokenizer.ggml.pre") != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(t.pre, metadata.Text("tokenizer.ggml.pre"));
  }
  if (metadata.Find("general.name") != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(t.model_name, metadata.Text("general.name"));
  }
  const std::vector<std::string>* tokens = metadata.Strings("tokenizer.ggml.tokens");
  if (tokens == nullptr || tokens->empty()) {
    return Fail(NotFound("'tokenizer.ggml.tokens' is missing or no array of strings"));
  }
  t.tokens = *tokens;
  const size_t count = tokens->size();
  TESSERA_RETURN_IF_ERROR(ReadArray(metadata, "tokenizer.ggml.scores", count, true, t.scores));
  TESSERA_RETURN_IF_ERROR(
      ReadArray(metadata, "tokenizer.ggml.token_type", count, true, t.token_types));
  TESSERA_RETURN_IF_ERROR(ReadArray(metadata, "tokenizer.ggml.merges", count, false, t.merges));
  TESSERA_RETURN_IF_ERROR(ReadArray(metadata, "tokenizer.ggml.precompiled_charsmap", count, false,
                                    t.precompiled_charsmap));
  TESSERA_RETURN_IF_ERROR(ReadId(metadata, "bos", t.bos_id));
  TESSERA_RETURN_IF_ERROR(ReadId(metadata, "eos", t.eos_id));
  TESSERA_RETURN_IF_ERROR(ReadId(metadata, "eot", t.eot_id));
  TESSERA_RETURN_IF_ERROR(ReadId(metadata, "unknown", t.unk_id));
  TESSERA_RETURN_IF_ERROR(ReadId(metadata, "padding", t.pad_id));
  TESSERA_RETURN_IF_ERROR(ReadFlag(metadata, "add_bos_token", t.add_bos));
  TESSERA_RETURN_IF_ERROR(ReadFlag(metadata, "add_eos_token", t.add_eos));
  TESSERA_RETURN_IF_ERROR(ReadFlag(metadata, "add_space_prefix", t.add_space_prefix));
  TESSERA_RETURN_IF_ERROR(
      ReadFlag(metadata, "remove_extra_whitespaces", t.remove_extra_whitespaces));
  return t;
}

}  // namespace tessera::model
