// SPDX-License-Identifier: Apache-2.0
//
// Which weights steps read.
#pragma once

#include <optional>
#include <set>
#include <type_traits>
#include <variant>

#include "bundle/program.h"

namespace tessera::bundle {

/// Calls each(pointer to WeightIndex) for those of a step, const as the step is.
template <class AnyStep, class Each>
requires std::is_same_v<std::remove_const_t<AnyStep>, Step>
void ForEachWeight(AnyStep* step, const Each& each) {
  const auto maybe = [&](auto& index) {
    if (index.has_value()) each(&*index);
  };
  const auto norm = [&](auto& found) {
    if (found.has_value()) each(&found->weight);
  };
  std::visit(
      [&](auto& s) {
        using Op = std::remove_cvref_t<decltype(s)>;
        if constexpr (std::is_same_v<Op, EmbedStep>) {
          each(&s.table);
        } else if constexpr (std::is_same_v<Op, QkvStep>) {
          each(&s.norm.weight);
          for (auto* rows : {&s.q, &s.k, &s.v}) each(&rows->weight);
          maybe(s.bias);
          norm(s.q_norm);
          norm(s.k_norm);
        } else if constexpr (std::is_same_v<Op, ProjectStep>) {
          each(&s.weight);
          maybe(s.bias);
        } else if constexpr (std::is_same_v<Op, GatedStep>) {
          each(&s.norm.weight);
          each(&s.gate);
          maybe(s.up);
        } else if constexpr (std::is_same_v<Op, HeadStep>) {
          each(&s.norm.weight);
          each(&s.weight);
        } else {
          static_assert(std::is_same_v<Op, AttentionStep>);
        }
      },
      step->op);
}

/// Embedding tables that no head multiplies with: of these only the rows of tokens are read.
inline std::set<WeightIndex> LookupTables(const Program& program) {
  std::set<WeightIndex> tables;
  for (const Step& step : program.steps)
    if (const auto* embed = std::get_if<EmbedStep>(&step.op)) tables.insert(embed->table);
  for (const Step& step : program.steps)
    if (const auto* head = std::get_if<HeadStep>(&step.op)) tables.erase(head->weight);
  return tables;
}

}  // namespace tessera::bundle
