// SPDX-License-Identifier: Apache-2.0
//
// Chat prompt: messages -> token ids, through the model's template, such that special tokens of the
// template are special and the same letters written by a user are only text ("<|im_end|>" in a
// message cannot end the turn).
//
// How: every special token's text inside a string of the messages gets a marker character put into
// it before rendering; the marker is one that occurs nowhere in the input. In the rendered text the
// markers are taken out again, and the places where they stood tell which occurrences came from a
// user. When there is none, which is the usual case, the rendered text is encoded in one call: ids
// are those of the plain way. Otherwise the text is cut at the template's own special tokens, where
// tokenizers cut anyhow, and pieces with a user's occurrence are encoded without special tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tessera::text {

/// The texts of a tokenizer's special tokens, searched leftmost, longest first. Immutable.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Tokenizer& tokenizer);
  explicit SpecialTokens(std::vector<std::string> texts);

  struct Match {
    size_t begin = 0;
    size_t end = 0;
    friend bool operator==(const Match&, const Match&) = default;
  };
  std::vector<Match> FindAll(std::string_view text) const;

 private:
  std::vector<std::string> texts_;                   // Longest first within a first byte.
  std::vector<std::pair<size_t, size_t>> by_first_;  // [256] range of texts_.
};

struct PromptSegment {
  std::string text;
  bool parse_special = true;
  friend bool operator==(const PromptSegment&, const PromptSegment&) = default;
};

struct ChatPrompt {
  std::string text;  // As the template wrote it.
  std::vector<TokenId> ids;
};

struct ChatPromptOptions {
  /// The prompt ends within the last message, behind its content, so that an answer goes on there.
  bool continues_last = false;
};

/// `input.messages` as normalised by the caller. BOS is not added: templates write it.
/// Errors are the template's or the tokenizer's; kInvalidArgument too when the last message is to
/// be continued and has no text in the prompt.
Result<ChatPrompt> BuildChatPrompt(RenderInput input, const ChatTemplate& chat_template,
                                   const Tokenizer& tokenizer, const SpecialTokens& specials,
                                   const ChatPromptOptions& options = {});

// The parts, for tests.

/// A character that occurs neither in `text` nor in any special token. kInvalidArgument when all
/// are taken.
Result<std::string> ChooseMarker(std::string_view text);
/// Puts `marker` after the first byte's character of each special token's text in every string of
/// `value`, except under the key "role". Returns how many.
size_t GuardStrings(const SpecialTokens& specials, std::string_view marker, json::Value* value);
/// Rendered text with markers -> what to encode, piece by piece.
std::vector<PromptSegment> SplitPrompt(std::string_view rendered, std::string_view marker,
                                       const SpecialTokens& specials);

}  // namespace tessera::text
