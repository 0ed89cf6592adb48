// SPDX-License-Identifier: Apache-2.0
//
// GrammarConstraint: the TokenConstraint of a text::Grammar, for one sequence.
//
//   request.constraint = MakeGrammarConstraint(grammar);
#pragma once

#include <memory>

#include "engine/token_constraint.h"
#include "text/grammar.h"

namespace tessera::engine {

/// Cheap: the grammar is started with the first mask.
std::shared_ptr<TokenConstraint> MakeGrammarConstraint(
    std::shared_ptr<const text::Grammar> grammar);

}  // namespace tessera::engine
