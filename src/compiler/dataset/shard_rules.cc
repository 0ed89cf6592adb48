// SPDX-License-Identifier: Apache-2.0
#include "compiler/dataset/shard_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "formats/limits.h"
#include "model/weight_names.h"

namespace tessera::compiler {
namespace {

constexpr std::string_view kByRows[] = {"attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"};
constexpr std::string_view kByColumns[] = {"attn_output", "ffn_down", "output"};

/// "blk.3.attn_q.weight" -> "attn_q" and "weight".
std::pair<std::string_view, std::string_view> LayerAndKind(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {name, ""};
  const std::string_view kind = name.substr(dot + 1);
  std::string_view module = name.substr(0, dot);
  if (const size_t last = module.rfind('.'); last != std::string_view::npos)
    module = module.substr(last + 1);
  return {module, kind};
}

bool Works(const model::ModelConfig& config, int64_t ranks) {
  return config.attention.heads % ranks == 0 && config.attention.kv_heads % ranks == 0 &&
         config.ffn.intermediate % ranks == 0 && config.hidden % ranks == 0;
}

}  // namespace

ShardRule ShardRuleOf(std::string_view name) {
  if (name == model::kGgufRopeFreqs) return ShardRule::kDropped;
  const auto [module, kind] = LayerAndKind(name);
  if (std::ranges::find(kByRows, module) != std::end(kByRows)) return ShardRule::kRows;
  if (kind == "weight" && std::ranges::find(kByColumns, module) != std::end(kByColumns))
    return ShardRule::kColumns;
  return ShardRule::kReplicated;
}

Status CheckRanks(const model::ModelConfig& config, int64_t ranks) {
  if (ranks >= 1 && ranks <= static_cast<int64_t>(formats::kMaxIrpaRanks) && Works(config, ranks))
    return {};
  std::vector<int64_t> possible;
  const int64_t most =
      std::min(config.attention.kv_heads, static_cast<int64_t>(formats::kMaxIrpaRanks));
  for (int64_t n = 1; n <= most; ++n)
    if (Works(config, n)) possible.push_back(n);
  return InvalidArgument(fmt::format(
      "a dataset for tp{} cannot be made of {} heads, {} KV heads and {} feed-forward columns; "
      "possible are tp{}",
      ranks, config.attention.heads, config.attention.kv_heads, config.ffn.intermediate,
      fmt::join(possible, ", tp")));
}

}  // namespace tessera::compiler
