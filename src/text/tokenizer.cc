// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <utility>

#include "base/check.h"
#include "text/textkit_abi.h"
#include "text/textkit_tokenizer_handle.h"
#include "textkit_tokenizer.h"

namespace tessera::text {
namespace {

/// Ids travel as uint32_t; a negative one becomes a number outside every vocabulary.
uint32_t ToRaw(TokenId id) {
  return static_cast<uint32_t>(id);
}

int32_t ToRaw(const std::optional<bool>& flag) {
  return flag.has_value() ? (*flag ? 1 : 0) : -1;
}

std::vector<TokenId> TakeIds(tk_ids* ids) {
  std::vector<TokenId> result(ids->data, ids->data + ids->len);
  tk_ids_free(ids);
  return result;
}

std::vector<tk_slice> ToSlices(std::span<const std::string> texts) {
  std::vector<tk_slice> slices;
  slices.reserve(texts.size());
  for (const std::string& text : texts) slices.push_back(ToSlice(text));
  return slices;
}

class TextkitTokenizer final : public Tokenizer, public TextkitTokenizerHandle {
 public:
  explicit TextkitTokenizer(tk_tokenizer* handle) : handle_(handle) {
    TESSERA_CHECK(handle != nullptr);
  }
  ~TextkitTokenizer() override { tk_tokenizer_free(handle_); }

  const tk_tokenizer* handle() const override { return handle_; }

  Result<std::vector<TokenId>> Encode(std::string_view text,
                                      const EncodeOptions& options) const override {
    tk_ids ids{};
    TextkitBuffer error;
    const tk_code code = tk_tokenizer_encode(handle_, ToSlice(text), options.add_special,
                                             options.parse_special, &ids, error.out());
    TESSERA_RETURN_IF_ERROR(FromTextkit(code, error));
    return TakeIds(&ids);
  }

  Result<std::string> Decode(std::span<const TokenId> ids, bool skip_special) const override {
    // uint32_t and int32_t may alias (same type but for the sign).
    const auto* raw = reinterpret_cast<const uint32_t*>(ids.data());
    TextkitBuffer text;
    TextkitBuffer error;
    const tk_code code =
        tk_tokenizer_decode(handle_, raw, ids.size(), skip_special, text.out(), error.out());
    TESSERA_RETURN_IF_ERROR(FromTextkit(code, error));
    return text.str();
  }

  int64_t vocab_size() const override { return tk_tokenizer_vocab_size(handle_); }

  std::string TokenText(TokenId id) const override {
    TextkitBuffer text;
    tk_tokenizer_token_text(handle_, ToRaw(id), text.out());
    return text.str();
  }

  std::string TokenBytes(TokenId id) const override {
    TextkitBuffer bytes;
    tk_tokenizer_token_bytes(handle_, ToRaw(id), bytes.out());
    return bytes.str();
  }

  bool IsSpecial(TokenId id) const override { return tk_tokenizer_is_special(handle_, ToRaw(id)); }

  std::vector<TokenId> SpecialIds() const override {
    tk_ids ids{};
    tk_tokenizer_special_ids(handle_, &ids);
    return TakeIds(&ids);
  }

  TokenId FindToken(std::string_view text) const override {
    return static_cast<TokenId>(tk_tokenizer_find(handle_, ToSlice(text)));
  }

  std::string ToJson() const override {
    TextkitBuffer json;
    TextkitBuffer error;
    const Status status =
        FromTextkit(tk_tokenizer_to_json(handle_, json.out(), error.out()), error);
    // The pipeline was checked when it was made; that it cannot be written is our bug.
    TESSERA_CHECK(status.ok());
    return json.str();
  }

 private:
  tk_tokenizer* const handle_;
};

}  // namespace

std::shared_ptr<const Tokenizer> AdoptTokenizer(tk_tokenizer* handle) {
  return std::make_shared<const TextkitTokenizer>(handle);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::FromJson(std::string_view json) {
  tk_tokenizer* handle = nullptr;
  TextkitBuffer error;
  const tk_code code = tk_tokenizer_from_json(ToSlice(json), &handle, error.out());
  TESSERA_RETURN_IF_ERROR(FromTextkit(code, error));
  return AdoptTokenizer(handle);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::FromGguf(const GgufVocabulary& vocabulary) {
  const std::vector<tk_slice> tokens = ToSlices(vocabulary.tokens);
  const std::vector<tk_slice> merges = ToSlices(vocabulary.merges);
  tk_gguf_vocabulary raw{};
  raw.model = ToSlice(vocabulary.model);
  raw.pre = ToSlice(vocabulary.pre);
  raw.model_name = ToSlice(vocabulary.model_name);
  raw.tokens = tokens.data();
  raw.tokens_count = tokens.size();
  raw.scores = vocabulary.scores.data();
  raw.scores_count = vocabulary.scores.size();
  raw.token_types = vocabulary.token_types.data();
  raw.token_types_count = vocabulary.token_types.size();
  raw.merges = merges.data();
  raw.merges_count = merges.size();
  raw.charsmap = {vocabulary.precompiled_charsmap.data(), vocabulary.precompiled_charsmap.size()};
  raw.bos_id = vocabulary.bos_id;
  raw.eos_id = vocabulary.eos_id;
  raw.unk_id = vocabulary.unk_id;
  raw.add_bos = ToRaw(vocabulary.add_bos);
  raw.add_eos = ToRaw(vocabulary.add_eos);
  raw.add_space_prefix = ToRaw(vocabulary.add_space_prefix);
  raw.remove_extra_whitespaces = ToRaw(vocabulary.remove_extra_whitespaces);
  tk_tokenizer* handle = nullptr;
  TextkitBuffer error;
  const tk_code code = tk_tokenizer_from_gguf(&raw, &handle, error.out());
  TESSERA_RETURN_IF_ERROR(FromTextkit(code, error));
  return AdoptTokenizer(handle);
}

}  // namespace tessera::text
