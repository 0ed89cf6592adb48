// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/check.h"
#include "text/textkit_abi.h"
#include "text/textkit_tokenizer_handle.h"
#include "text/tokenizer.h"
#include "textkit_tokenizer.h"

namespace tessera::text {
namespace {

class TextkitDetokenizer final : public Detokenizer {
 public:
  explicit TextkitDetokenizer(tk_detokenizer* stream) : stream_(stream) {}
  ~TextkitDetokenizer() override { tk_detokenizer_free(stream_); }

  Result<std::string> Push(TokenId id) override {
    TextkitBuffer text;
    TextkitBuffer error;
    const tk_code code =
        tk_detokenizer_push(stream_, static_cast<uint32_t>(id), text.out(), error.out());
    TESSERA_RETURN_IF_ERROR(FromTextkit(code, error));
    return text.str();
  }

  Result<std::string> Flush() override {
    TextkitBuffer text;
    TextkitBuffer error;
    TESSERA_RETURN_IF_ERROR(
        FromTextkit(tk_detokenizer_flush(stream_, text.out(), error.out()), error));
    return text.str();
  }

 private:
  tk_detokenizer* const stream_;
};

}  // namespace

std::unique_ptr<Detokenizer> Detokenizer::Make(std::shared_ptr<const Tokenizer> tokenizer,
                                               bool skip_special) {
  const auto* owner = dynamic_cast<const TextkitTokenizerHandle*>(tokenizer.get());
  TESSERA_CHECK(owner != nullptr);
  tk_detokenizer* stream = nullptr;
  TextkitBuffer error;
  const tk_code code = tk_detokenizer_new(owner->handle(), skip_special, &stream, error.out());
  TESSERA_CHECK(code == TK_OK && stream != nullptr);
  // The stream shares the tokenizer inside textkit, so `tokenizer` need not be kept.
  return std::make_unique<TextkitDetokenizer>(stream);
}

}  // namespace tessera::text
