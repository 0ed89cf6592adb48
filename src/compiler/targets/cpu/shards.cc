// SPDX-License-Identifier: Apache-2.0
#include "compiler/targets/cpu/shards.h"

#include "bundle/shard.h"

namespace tessera::compiler {
namespace {

using bundle::WeightSlice;

Recipe SliceRecipe(const Recipe& whole, const bundle::Weight& weight, const WeightSlice& slice) {
  Recipe recipe = whole;
  if (slice.kind == WeightSlice::Kind::kInputs) {
    recipe.first_input = slice.inputs.begin;
    recipe.inputs = weight.k;
    return recipe;
  }
  recipe.runs.clear();
  for (const bundle::Interval& rows : slice.rows) {
    const RowRuns runs = Slice(whole.runs, rows.begin, rows.size());
    recipe.runs.insert(recipe.runs.end(), runs.begin(), runs.end());
  }
  return recipe;
}

}  // namespace

Result<std::vector<Archive>> ArchivesOf(const Module& module) {
  const bundle::Program& whole = module.program;
  TESSERA_ASSIGN_OR_RETURN(
      const std::vector<bundle::RankShare> shares,
      bundle::PlanShares(whole, module.options.tensor_parallel, module.options.allow_uneven));
  std::vector<Archive> archives = {{std::string(bundle::kParametersFile), {}, {}}};
  if (shares.size() == 1) {
    archives[0].weights = whole.weights;
    archives[0].recipes = module.recipes;
    return archives;
  }
  for (int64_t rank = 0; rank < std::ssize(shares); ++rank) {
    TESSERA_ASSIGN_OR_RETURN(const bundle::RankProgram part,
                             bundle::MakeRankProgram(whole, shares, rank));
    Archive own{bundle::RankFile(bundle::kParametersFile, rank), {}, {}};
    for (size_t i = 0; i < whole.weights.size(); ++i) {
      const WeightSlice& slice = part.slices[i];
      const bool everywhere = slice.kind == WeightSlice::Kind::kWhole;
      if (everywhere && rank > 0) continue;
      Archive& archive = everywhere ? archives[0] : own;
      archive.weights.push_back(part.program.weights[i]);
      archive.recipes.push_back(
          everywhere ? module.recipes[i] : SliceRecipe(module.recipes[i], whole.weights[i], slice));
    }
    archives.push_back(std::move(own));
  }
  return archives;
}

}  // namespace tessera::compiler
