// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tessera::engine {
namespace {

/// What stops a grammar half way lies in the grammar, whatever word textkit has for it: the request
/// is at fault, and trying again does not help.
Status AsFault(const Status& status) {
  if (status.code() == Code::kInternal) return status;
  return FailedPrecondition(
      fmt::format("the output cannot be kept to its form any longer: {}", status.message()));
}

class GrammarConstraint : public TokenConstraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<const text::Grammar> grammar)
      : grammar_(std::move(grammar)) {}

  Result<Next> ComputeMask(std::span<uint32_t> mask) override {
    if (constraint_ == nullptr) {
      TESSERA_ASSIGN_OR_RETURN(constraint_, grammar_->Start());
      words_.resize(grammar_->vocabulary().mask_words());
    }
    if (Status status = constraint_->ComputeMask(words_); !status.ok())
      return Fail(AsFault(status));
    auto accepting = constraint_->IsAccepting();
    if (!accepting.has_value()) return Fail(AsFault(accepting.error()));
    for (const text::TokenId id : grammar_->vocabulary().eos())
      words_[static_cast<size_t>(id / 32)] &= ~(1u << (id % 32));
    // The model's table of tokens may be longer than the tokenizer's, or shorter.
    const size_t shared = std::min(mask.size(), words_.size());
    std::copy_n(words_.begin(), shared, mask.begin());
    std::ranges::fill(mask.subspan(shared), 0);
    const bool may_go_on = std::ranges::any_of(mask, [](uint32_t word) { return word != 0; });
    if (!*accepting && !may_go_on)
      return Fail(AsFault(InvalidArgument("no token of the model can come next")));
    return Next{.may_end = *accepting, .may_go_on = may_go_on};
  }

  Status Accept(text::TokenId id) override {
    const Status status = constraint_->Commit(id);
    return status.ok() ? Status() : AsFault(status);
  }

 private:
  const std::shared_ptr<const text::Grammar> grammar_;
  std::unique_ptr<text::Constraint> constraint_;  // Null before the first mask.
  std::vector<uint32_t> words_;
};

}  // namespace

std::shared_ptr<TokenConstraint> MakeGrammarConstraint(
    std::shared_ptr<const text::Grammar> grammar) {
  return std::make_shared<GrammarConstraint>(std::move(grammar));
}

}  // namespace tessera::engine
