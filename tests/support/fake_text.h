// SPDX-License-Identifier: Apache-2.0
//
// FakeTokenizer and FakeDetokenizer: text of tests without a vocabulary file. A token is a byte,
// after them come special tokens by name. Multi-byte characters therefore take several tokens,
// which is the hard case of every stream.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tessera::testing {

class FakeTokenizer : public text::Tokenizer {
 public:
  /// `specials` get the ids from 256 on. `bos` < 0: none is added.
  explicit FakeTokenizer(std::vector<std::string> specials, text::TokenId bos = -1);

  Result<std::vector<text::TokenId>> Encode(std::string_view text,
                                            const text::EncodeOptions& options) const override;
  Result<std::string> Decode(std::span<const text::TokenId> ids, bool skip_special) const override;
  int64_t vocab_size() const override { return 256 + static_cast<int64_t>(specials_.size()); }
  std::string TokenText(text::TokenId id) const override { return TokenBytes(id); }
  std::string TokenBytes(text::TokenId id) const override;
  bool IsSpecial(text::TokenId id) const override { return id >= 256 && id < vocab_size(); }
  std::vector<text::TokenId> SpecialIds() const override;
  text::TokenId FindToken(std::string_view text) const override;
  std::string ToJson() const override { return "{}"; }

 private:
  std::vector<std::string> specials_;
  text::TokenId bos_;
};

/// Joins bytes to characters; a byte that cannot go on gives U+FFFD.
class FakeDetokenizer : public text::Detokenizer {
 public:
  FakeDetokenizer(std::shared_ptr<const text::Tokenizer> tokenizer, bool skip_special)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}
  Result<std::string> Push(text::TokenId id) override;
  Result<std::string> Flush() override;

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  bool skip_special_;
  std::string pending_;
};

/// ChatML: "<|im_start|>ROLE\nCONTENT<|im_end|>\n" for each message, then the assistant's opening.
/// A message whose content is "raise" fails as a template's raise_exception does.
class FakeChatTemplate : public text::ChatTemplate {
 public:
  Result<std::string> Render(const text::RenderInput& input) const override;
  Result<std::string> RenderRequest(std::string_view request_json,
                                    int64_t now_unix_seconds) const override;
  const std::string& source() const override { return source_; }

 private:
  std::string source_ = "chatml";
};

}  // namespace tessera::testing
