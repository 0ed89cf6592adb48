// SPDX-License-Identifier: Apache-2.0
#include "model/build.h"

#include <fmt/format.h>

#include "graph/builder.h"
#include "model/families.h"
#include "model/rope.h"
#include "model/weight_ledger.h"

namespace tessera::model {
namespace {

using graph::ValueId;

/// Builds one decoder layer after the other. Every call that makes a node is a statement of its
/// own: the order of a call's arguments is the compiler's choice, the order of nodes must not be.
class DecoderBuilder {
 public:
  DecoderBuilder(const ModelConfig& config, const formats::ParameterIndex* index,
                 const Family& family)
      : config_(config),
        names_(config.naming == Naming::kGguf ? *family.gguf_names : *family.hf_names),
        builder_(config.family),
        ledger_(index, builder_) {}

  Result<graph::Graph> Build() && {
    rope_table_ = builder_.AddRopeTable(MakeRopeTable(config_.rope));
    const tensor::Shape table_shape{config_.vocab_size, config_.hidden};
    const ValueId table = ledger_.Want(names_.Weight(names_.embedding), table_shape);
    ValueId x = builder_.Embed(table, "embedding");
    if (config_.embedding.scale != 1) {
      x = builder_.Scale(x, config_.embedding.scale, "embedding_scaled");
    }
    for (layer_ = 0; layer_ < config_.layers; ++layer_) {
      x = Residual(x, Attention(x), "after_attn");
      x = Residual(x, Ffn(x), "output");
    }
    const ValueId norm = ledger_.Want(names_.Weight(names_.final_norm), {config_.hidden});
    x = builder_.RmsNorm(x, norm, config_.norm_eps, "final_norm");
    const ValueId head =
        config_.embedding.tied ? table : ledger_.Want(names_.Weight(names_.head), table_shape);
    const ValueId logits = Logits(builder_.Linear(x, head, std::nullopt, HeadLabel()));
    TESSERA_RETURN_IF_ERROR(ledger_.Finish(config_));
    return std::move(builder_).Finish(logits);
  }

 private:
  std::string Label(std::string_view name) const { return fmt::format("layer{}.{}", layer_, name); }

  ValueId LayerNorm(ValueId x, std::string_view name, int64_t width, std::string_view label) {
    const ValueId weight = ledger_.Want(names_.LayerWeight(layer_, name), {width});
    return builder_.RmsNorm(x, weight, config_.norm_eps, Label(label));
  }

  /// x [T,columns] -> [T,rows]
  ValueId Project(ValueId x, std::string_view name, int64_t rows, bool has_bias,
                  std::string_view label) {
    const int64_t columns = builder_.type(x).dims.columns();
    const ValueId weight = ledger_.Want(names_.LayerWeight(layer_, name), {rows, columns});
    std::optional<ValueId> bias;
    if (has_bias) bias = ledger_.Want(names_.LayerBias(layer_, name), {rows});
    return builder_.Linear(x, weight, bias, Label(label));
  }

  /// Projection, heads, norm of each head if the family has it, rope. -> [T,heads,head_dim]
  ValueId RotatedHeads(ValueId x, std::string_view name, std::string_view norm_name, int64_t heads,
                       std::string_view label) {
    const AttentionConfig& a = config_.attention;
    const ValueId flat = Project(x, name, heads * a.head_dim, a.qkv_bias, label);
    ValueId split = builder_.SplitHeads(flat, heads);
    if (a.qk_norm) split = LayerNorm(split, norm_name, a.head_dim, fmt::format("{}_norm", label));
    return builder_.Rope(split, rope_table_, Label(fmt::format("{}_rope", label)));
  }

  /// What attention adds to the residual stream. [T,hidden] -> [T,hidden]
  ValueId Attention(ValueId x) {
    const AttentionConfig& a = config_.attention;
    const ValueId h = LayerNorm(x, names_.attn_norm, config_.hidden, "attn_norm");
    const ValueId q = RotatedHeads(h, names_.q, names_.q_norm, a.heads, "q");
    const ValueId k = RotatedHeads(h, names_.k, names_.k_norm, a.kv_heads, "k");
    const ValueId flat = Project(h, names_.v, a.kv_heads * a.head_dim, a.qkv_bias, "v");
    const ValueId v = builder_.SplitHeads(flat, a.kv_heads);
    const bool windowed = a.window && a.window_layers[static_cast<size_t>(layer_)];
    const graph::AttentionAttrs attrs{.layer = layer_,
                                      .heads = a.heads,
                                      .kv_heads = a.kv_heads,
                                      .head_dim = a.head_dim,
                                      .scale = a.scale,
                                      .window = windowed ? a.window : std::nullopt,
                                      .softcap = a.softcap};
    const ValueId merged = builder_.Attention(q, k, v, attrs, Label("attn"));
    return Project(merged, names_.o, config_.hidden, a.output_bias, "attn_out");
  }

  /// What the feed-forward network adds. [T,hidden] -> [T,hidden]
  ValueId Ffn(ValueId x) {
    const FfnConfig& f = config_.ffn;
    const ValueId h = LayerNorm(x, names_.ffn_norm, config_.hidden, "ffn_norm");
    ValueId inner;
    if (f.gated) {
      const ValueId gate = Project(h, names_.gate, f.intermediate, f.bias, "gate");
      const ValueId up = Project(h, names_.up, f.intermediate, f.bias, "up");
      inner = builder_.Mul(Activate(gate), up, Label("ffn_act"));
    } else {
      inner = Activate(Project(h, names_.up, f.intermediate, f.bias, "up"));
    }
    return Project(inner, names_.down, config_.hidden, f.bias, "ffn_out");
  }

  ValueId Activate(ValueId x) {
    switch (config_.ffn.activation) {
      case Activation::kSilu:
        return builder_.Silu(x);
      case Activation::kGeluTanh:
        return builder_.GeluTanh(x);
    }
    TESSERA_CHECK(false);
  }

  ValueId Residual(ValueId x, ValueId added, std::string_view label) {
    if (config_.residual_scale != 1) added = builder_.Scale(added, config_.residual_scale);
    return builder_.Add(x, added, Label(label));
  }

  bool LogitsAreHead() const { return config_.logit_scale == 1 && !config_.logit_softcap; }
  std::string HeadLabel() const { return LogitsAreHead() ? "logits" : "head"; }

  ValueId Logits(ValueId head) {
    if (LogitsAreHead()) return head;
    if (!config_.logit_softcap) return builder_.Scale(head, config_.logit_scale, "logits");
    if (config_.logit_scale != 1) head = builder_.Scale(head, config_.logit_scale);
    return builder_.Softcap(head, *config_.logit_softcap, "logits");
  }

  const ModelConfig& config_;
  const WeightNames& names_;
  graph::Builder builder_;
  WeightLedger ledger_;
  uint32_t rope_table_ = 0;
  int64_t layer_ = 0;
};

Result<const Family*> CheckedFamily(const ModelConfig& config) {
  TESSERA_RETURN_IF_ERROR(CheckConfig(config));
  return FindFamily(config.family);
}

}  // namespace

Result<graph::Graph> BuildGraph(const ModelConfig& config, const formats::ParameterIndex& index) {
  TESSERA_ASSIGN_OR_RETURN(const Family* const family, CheckedFamily(config));
  return DecoderBuilder(config, &index, *family).Build();
}

Result<graph::Graph> BuildGraph(const ModelConfig& config) {
  TESSERA_ASSIGN_OR_RETURN(const Family* const family, CheckedFamily(config));
  return DecoderBuilder(config, nullptr, *family).Build();
}

}  // namespace tessera::model
