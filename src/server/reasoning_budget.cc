// SPDX-License-Identifier: Apache-2.0
#include "server/reasoning_budget.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace tessera::server {

ReasoningBudget::ReasoningBudget(std::shared_ptr<engine::TokenConstraint> inner,
                                 std::shared_ptr<const text::Tokenizer> tokenizer,
                                 const text::ReasoningSyntax& syntax, Options options)
    : inner_(std::move(inner)),
      tokenizer_(std::move(tokenizer)),
      options_(std::move(options)),
      parser_(syntax, {.is_open = options_.starts_reasoning}) {
  TESSERA_CHECK(!options_.end_ids.empty());
}

Result<engine::TokenConstraint::Next> ReasoningBudget::ComputeMask(std::span<uint32_t> mask) {
  Next next{.may_end = true, .may_go_on = true};
  if (inner_ != nullptr) {
    TESSERA_ASSIGN_OR_RETURN(next, inner_->ComputeMask(mask));
  } else {
    std::ranges::fill(mask, ~uint32_t{0});
    const auto vocabulary = static_cast<size_t>(tokenizer_->vocab_size());
    for (size_t id = vocabulary; id < mask.size() * 32; ++id)
      mask[id / 32] &= ~(uint32_t{1} << (id % 32));
    for (const text::TokenId eos : options_.eos_ids)
      mask[static_cast<size_t>(eos) / 32] &= ~(uint32_t{1} << (eos % 32));
  }
  if (!IsOver()) return next;
  std::ranges::fill(mask, 0);
  // The mark may be of several tokens; behind its last one there are no thoughts to end.
  const auto id =
      static_cast<size_t>(options_.end_ids[std::min(said_, options_.end_ids.size() - 1)]);
  mask[id / 32] |= uint32_t{1} << (id % 32);
  return Next{.may_end = false, .may_go_on = true};
}

Status ReasoningBudget::Accept(text::TokenId id) {
  if (inner_ != nullptr) TESSERA_RETURN_IF_ERROR(inner_->Accept(id));
  if (IsOver()) ++said_;
  const bool was_reasoning = parser_.is_reasoning();
  text::ReasoningParser::Delta delta;
  parser_.Push(tokenizer_->IsSpecial(id) ? tokenizer_->TokenText(id) : tokenizer_->TokenBytes(id),
               &delta);
  if (was_reasoning && parser_.is_reasoning()) ++spent_;
  return {};
}

}  // namespace tessera::server
