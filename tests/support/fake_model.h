// SPDX-License-Identifier: Apache-2.0
//
// FakeServedModel: a served model of fake tokenizer and template, for tests of server/.
#pragma once

#include <memory>

#include "server/served_model.h"
#include "support/fake_text.h"

namespace tessera::testing {

inline constexpr text::TokenId kImStart = 256;
inline constexpr text::TokenId kImEnd = 257;
inline constexpr text::TokenId kEndOfText = 258;

inline server::ServedModel FakeServedModel() {
  auto tokenizer = std::make_shared<const FakeTokenizer>(
      std::vector<std::string>{"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<extra>"});
  server::ServedModel model;
  model.id = "org/fake";
  model.created_unix_seconds = 1'700'000'001;
  model.fingerprint = "fp_fake";
  model.tokenizer = tokenizer;
  model.make_detokenizer = [tokenizer](bool skip_special) {
    return std::make_unique<FakeDetokenizer>(tokenizer, skip_special);
  };
  model.chat_template = std::make_shared<const FakeChatTemplate>();
  model.eos_ids = {kImEnd, kEndOfText};
  model.grammars = std::make_shared<text::GrammarCache>(tokenizer, model.eos_ids);
  return model;
}

/// The same, whose template marks thoughts.
inline server::ServedModel ThinkingModel() {
  server::ServedModel model = FakeServedModel();
  model.chat_format.reasoning = *text::FindReasoningSyntax("think");
  return model;
}

}  // namespace tessera::testing
