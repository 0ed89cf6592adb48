// SPDX-License-Identifier: Apache-2.0
//
// Tokenizer: text <-> token ids, exact by construction (Hugging Face `tokenizers` in textkit/).
// Made from tokenizer.json, from GGUF metadata or from a table (tokenizer_table.h). Immutable and
// thread-safe: any thread may encode. Detokenizer: the streaming half, one per sequence, not
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera::text {

using TokenId = int32_t;

/// What a GGUF file says of its tokenizer; the caller (model/, cli/) fills it from metadata, so
/// that text/ does not know the format. Spans are parallel, index = token id; they are only read
/// during FromGguf(). Leave a flag empty where the file does not state it: the default depends on
/// the model and the pre-tokenizer.
struct GgufVocabulary {
  std::string model;       // tokenizer.ggml.model: "gpt2", "llama", "gemma4", "t5"
  std::string pre;         // tokenizer.ggml.pre: "smollm", "llama-bpe", ...; may be empty
  std::string model_name;  // general.name; Phi-3's special tokens strip white space by it
  std::span<const std::string> tokens;
  std::span<const float> scores;  // may be empty
  // May be empty. ggml's: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
  std::span<const int32_t> token_types;
  std::span<const std::string> merges;            // BPE: "left right"
  std::span<const uint8_t> precompiled_charsmap;  // "t5"; may be empty
  int64_t bos_id = -1, eos_id = -1, eot_id = -1, unk_id = -1, pad_id = -1;
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
};

struct EncodeOptions {
  /// Let the post-processor add BOS and its like.
  bool add_special = true;
  /// Recognise special tokens written in the text. Off for user content of a chat: then control
  /// tokens are plain text. Other added tokens (Gemma's runs of new lines, Qwen's <think>) are
  /// recognised all the same, as in the reference.
  bool parse_special = true;
};

class Tokenizer {
 public:
  /// `json` is the content of tokenizer.json. kInvalidArgument says what is wrong with it,
  /// kResourceExhausted when it passes limits.h. Its truncation and padding are ignored, as
  /// transformers does: a prompt is never cut here.
  static Result<std::shared_ptr<const Tokenizer>> FromJson(std::string_view json);
  /// kUnimplemented names a model or pre-tokeniser that we lack. Ids are those of llama.cpp.
  static Result<std::shared_ptr<const Tokenizer>> FromGguf(const GgufVocabulary& vocabulary);
  virtual ~Tokenizer() = default;

  /// kInvalidArgument when `text` is not UTF-8, kResourceExhausted past limits.h.
  virtual Result<std::vector<TokenId>> Encode(std::string_view text,
                                              const EncodeOptions& options) const = 0;
  /// The whole text of `ids`. Ids outside the vocabulary are kInvalidArgument. Bytes that are not
  /// UTF-8 become U+FFFD, as in the reference.
  virtual Result<std::string> Decode(std::span<const TokenId> ids, bool skip_special) const = 0;
  /// One past the largest id, added tokens included.
  virtual int64_t vocab_size() const = 0;
  /// The token's own text as the vocabulary spells it; empty for an id that has none.
  virtual std::string TokenText(TokenId id) const = 0;
  /// The raw bytes that the token contributes to text (for logprobs and constraints).
  virtual std::string TokenBytes(TokenId id) const = 0;
  virtual bool IsSpecial(TokenId id) const = 0;
  /// All ids that IsSpecial() affirms, ascending.
  virtual std::vector<TokenId> SpecialIds() const = 0;
  /// -1 when the vocabulary has no such token.
  virtual TokenId FindToken(std::string_view text) const = 0;
  /// tokenizer.json text that makes an equal tokenizer: what a bundle stores.
  virtual std::string ToJson() const = 0;
};

/// Incremental decoding: feeds tokens, gives text that never ends inside a character; the
/// concatenation of all pieces and Flush() equals Decode() of the whole. One exception: where byte
/// tokens ("<0xE4>") form good characters followed by bad bytes, Decode() replaces the whole run by
/// U+FFFD and a stream, which has sent the characters already, only the bad bytes.
/// Amortised O(1) per token. A decoder that we cannot run piecewise (none of the known models has
/// one) gives all its text in Flush().
class Detokenizer {
 public:
  static std::unique_ptr<Detokenizer> Make(std::shared_ptr<const Tokenizer> tokenizer,
                                           bool skip_special);
  virtual ~Detokenizer() = default;
  /// Text that became complete with this token; often empty for a partial character.
  /// kInvalidArgument for an id outside the vocabulary.
  virtual Result<std::string> Push(TokenId id) = 0;
  /// What is left at the end of the sequence (an incomplete character gives U+FFFD). The object can
  /// then decode another sequence.
  virtual Result<std::string> Flush() = 0;
};

}  // namespace tessera::text
