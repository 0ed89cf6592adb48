// SPDX-License-Identifier: Apache-2.0
#include "text/kept_specials.h"

#include <utility>
#include <vector>

namespace tessera::text {
namespace {

class KeepingDetokenizer : public Detokenizer {
 public:
  KeepingDetokenizer(std::unique_ptr<Detokenizer> whole, std::shared_ptr<const Tokenizer> tokenizer,
                     std::set<TokenId> kept)
      : whole_(std::move(whole)), tokenizer_(std::move(tokenizer)), kept_(std::move(kept)) {}

  Result<std::string> Push(TokenId id) override {
    if (tokenizer_->IsSpecial(id) && !kept_.contains(id)) return std::string();
    return whole_->Push(id);
  }
  Result<std::string> Flush() override { return whole_->Flush(); }

 private:
  const std::unique_ptr<Detokenizer> whole_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::set<TokenId> kept_;
};

}  // namespace

std::set<TokenId> SpecialsIn(const Tokenizer& tokenizer, const ToolSyntax* tools,
                             const ReasoningSyntax* reasoning) {
  std::vector<std::string> texts;
  if (reasoning != nullptr) texts = {reasoning->begin, reasoning->end};
  if (tools != nullptr) {
    for (const CallPart& part : tools->parts) texts.push_back(part.text);
    for (const std::string* text :
         {&tools->section_begin, &tools->call_begin, &tools->call_end, &tools->separator,
          &tools->section_end, &tools->parameter_begin, &tools->key_end, &tools->json_key_end,
          &tools->parameter_end, &tools->parameter_separator})
      texts.push_back(*text);
  }
  std::set<TokenId> found;
  for (const TokenId id : tokenizer.SpecialIds()) {
    const std::string name = tokenizer.TokenText(id);
    for (const std::string& text : texts)
      if (!name.empty() && text.find(name) != std::string::npos) found.insert(id);
  }
  return found;
}

std::unique_ptr<Detokenizer> KeepSpecials(std::unique_ptr<Detokenizer> whole,
                                          std::shared_ptr<const Tokenizer> tokenizer,
                                          std::set<TokenId> kept) {
  return std::make_unique<KeepingDetokenizer>(std::move(whole), std::move(tokenizer),
                                              std::move(kept));
}

}  // namespace tessera::text
