// SPDX-License-Identifier: Apache-2.0
//
// ReasoningBudget: a constraint that ends a model's thoughts after so many tokens, by letting only
// the tokens of their end mark be said. Around another constraint, or around none: then any token
// may be said. It reads what a text::ReasoningParser reads, so both agree on where thoughts are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/token_constraint.h"
#include "text/reasoning_parser.h"
#include "text/tokenizer.h"

namespace tessera::server {

class ReasoningBudget : public engine::TokenConstraint {
 public:
  struct Options {
    bool starts_reasoning = false;  // As the parser's is_open.
    int64_t budget_tokens = 0;
    std::vector<text::TokenId> end_ids;  // The tokens of the end mark; at least one.
    std::vector<text::TokenId> eos_ids;  // Of the request.
  };
  /// `inner` may be null; one that is there must allow the end mark anywhere in thoughts.
  ReasoningBudget(std::shared_ptr<engine::TokenConstraint> inner,
                  std::shared_ptr<const text::Tokenizer> tokenizer,
                  const text::ReasoningSyntax& syntax, Options options);

  Result<Next> ComputeMask(std::span<uint32_t> mask) override;
  Status Accept(text::TokenId id) override;

 private:
  bool IsOver() const { return parser_.is_reasoning() && spent_ >= options_.budget_tokens; }

  const std::shared_ptr<engine::TokenConstraint> inner_;
  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  const Options options_;
  text::ReasoningParser parser_;
  int64_t spent_ = 0;
  size_t said_ = 0;  // Tokens of the end mark since the budget was spent.
};

}  // namespace tessera::server
