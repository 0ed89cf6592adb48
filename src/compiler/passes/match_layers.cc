// SPDX-License-Identifier: Apache-2.0
//
// Follows the residual stream from the embedding to the head. Whatever the stream meets must be
// what the fused steps compute; anything else is refused by name.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/passes/passes.h"
#include "graph/verify.h"

namespace tessera::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::ValueId;

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : g_(graph), users_(graph::Users(graph)) {}

  Result<MatchedModel> Match() {
    MatchedModel model;
    TESSERA_ASSIGN_OR_RETURN(ValueId stream, MatchEmbedding(&model));
    for (int64_t layer = 0; layer < graph::LayerCount(g_); ++layer) {
      MatchedLayer matched;
      TESSERA_ASSIGN_OR_RETURN(stream, MatchAttention(stream, &matched));
      TESSERA_ASSIGN_OR_RETURN(stream, MatchFfn(stream, &matched));
      model.layers.push_back(std::move(matched));
    }
    TESSERA_RETURN_IF_ERROR(MatchHead(stream, &model));
    return model;
  }

 private:
  Status Wrong(ValueId at, std::string_view expected) const {
    return Unimplemented(fmt::format("{} is not what the cpu target computes here: expected {}",
                                     graph::Describe(g_, at), expected));
  }

  /// The one user of `id` with that operation; other users are allowed.
  Result<ValueId> UserOf(ValueId id, Op op) const {
    std::optional<ValueId> found;
    for (const ValueId user : users_[id.index]) {
      if (g_.node(user).op != op) continue;
      if (found && !(*found == user)) return Fail(Wrong(user, fmt::format("one {}", Name(op))));
      found = user;
    }
    if (!found) return Fail(Wrong(id, fmt::format("a {} after it", Name(op))));
    return *found;
  }
  Result<ValueId> OnlyUserOf(ValueId id, Op op) const {
    const std::vector<ValueId>& users = users_[id.index];
    if (users.size() != 1) return Fail(Wrong(id, "one user"));
    if (g_.node(users[0]).op != op) return Fail(Wrong(users[0], Name(op)));
    return users[0];
  }
  Result<ValueId> InputOf(ValueId id, size_t input, Op op) const {
    const ValueId at = g_.node(id).inputs[input];
    if (g_.node(at).op != op) return Fail(Wrong(at, Name(op)));
    return at;
  }
  Result<std::string> ParameterOf(ValueId id, size_t input) const {
    TESSERA_ASSIGN_OR_RETURN(const ValueId at, InputOf(id, input, Op::kParameter));
    return g_.node(at).As<graph::ParameterAttrs>().name;
  }

  Result<MatchedNorm> NormOf(ValueId id) const {
    TESSERA_ASSIGN_OR_RETURN(std::string weight, ParameterOf(id, 1));
    return MatchedNorm{std::move(weight), g_.node(id).As<graph::RmsNormAttrs>().eps};
  }
  Result<MatchedLinear> LinearOf(ValueId id) const {
    MatchedLinear linear;
    TESSERA_ASSIGN_OR_RETURN(linear.weight, ParameterOf(id, 1));
    if (g_.node(id).inputs.size() > 2) {
      TESSERA_ASSIGN_OR_RETURN(linear.bias, ParameterOf(id, 2));
    }
    const tensor::Shape& shape = g_.input(g_.node(id), 1).type.dims;
    linear.rows = shape[0];
    linear.columns = shape[1];
    return linear;
  }

  Result<ValueId> MatchEmbedding(MatchedModel* model) const {
    const auto embed = std::find_if(g_.nodes.begin(), g_.nodes.end(),
                                    [](const Node& node) { return node.op == Op::kEmbed; });
    if (embed == g_.nodes.end()) return Fail(Unimplemented("the graph embeds no tokens"));
    ValueId at{static_cast<uint32_t>(embed - g_.nodes.begin())};
    TESSERA_ASSIGN_OR_RETURN(model->embedding, ParameterOf(at, 0));
    const tensor::Shape& shape = g_.input(*embed, 0).type.dims;
    model->vocab_size = shape[0];
    model->hidden = shape[1];
    const std::vector<ValueId>& users = users_[at.index];
    if (users.size() == 1 && g_.node(users[0]).op == Op::kScale) {
      at = users[0];
      model->embedding_scale = g_.node(at).As<graph::ScaleAttrs>().factor;
    }
    return at;
  }

  /// One of q, k: back from attention over rope and head norm to the projection.
  struct Branch {
    MatchedLinear linear;
    std::optional<MatchedNorm> norm;
    std::optional<uint32_t> rope;
    ValueId input;  // What is projected.
  };
  Result<Branch> BranchOf(ValueId attention, size_t input) const {
    Branch branch;
    ValueId at = g_.node(attention).inputs[input];
    if (g_.node(at).op == Op::kRope) {
      branch.rope = g_.node(at).As<graph::RopeAttrs>().table;
      at = g_.node(at).inputs[0];
    }
    if (g_.node(at).op == Op::kRmsNorm) {
      TESSERA_ASSIGN_OR_RETURN(branch.norm, NormOf(at));
      at = g_.node(at).inputs[0];
    }
    if (g_.node(at).op != Op::kSplitHeads) return Fail(Wrong(at, "split_heads"));
    TESSERA_ASSIGN_OR_RETURN(const ValueId linear, InputOf(at, 0, Op::kLinear));
    TESSERA_ASSIGN_OR_RETURN(branch.linear, LinearOf(linear));
    branch.input = g_.node(linear).inputs[0];
    return branch;
  }

  /// The attention node that is fed by the norm of `stream`.
  Result<ValueId> AttentionOf(ValueId norm) const {
    for (uint32_t i = norm.index; i < g_.nodes.size(); ++i) {
      if (g_.nodes[i].op == Op::kAttention) return ValueId{i};
    }
    return Fail(Wrong(norm, "an attention after it"));
  }

  Result<ValueId> AddTo(ValueId stream, ValueId branch) const {
    TESSERA_ASSIGN_OR_RETURN(const ValueId sum, OnlyUserOf(branch, Op::kAdd));
    const std::vector<ValueId>& terms = g_.node(sum).inputs;
    const ValueId other = terms[0] == branch ? terms[1] : terms[0];
    if (!(other == stream)) return Fail(Wrong(sum, "an add to the residual stream"));
    if (users_[stream.index].size() != 2) return Fail(Wrong(stream, "a norm and an add only"));
    return sum;
  }

  Result<ValueId> MatchAttention(ValueId stream, MatchedLayer* layer) const {
    TESSERA_ASSIGN_OR_RETURN(const ValueId norm, UserOf(stream, Op::kRmsNorm));
    TESSERA_ASSIGN_OR_RETURN(layer->attention_norm, NormOf(norm));
    TESSERA_ASSIGN_OR_RETURN(const ValueId attention, AttentionOf(norm));
    layer->attention = g_.node(attention).As<graph::AttentionAttrs>();
    TESSERA_ASSIGN_OR_RETURN(Branch q, BranchOf(attention, 0));
    TESSERA_ASSIGN_OR_RETURN(Branch k, BranchOf(attention, 1));
    TESSERA_ASSIGN_OR_RETURN(Branch v, BranchOf(attention, 2));
    if (!(q.input == norm) || !(k.input == norm) || !(v.input == norm))
      return Fail(Wrong(attention, "q, k and v of one norm"));
    if (users_[norm.index].size() != 3) return Fail(Wrong(norm, "three projections only"));
    if (q.rope != k.rope) return Fail(Wrong(attention, "one rope table for q and k"));
    if (v.rope || v.norm) return Fail(Wrong(attention, "values without rope and norm"));
    layer->q = std::move(q.linear);
    layer->k = std::move(k.linear);
    layer->v = std::move(v.linear);
    layer->q_norm = std::move(q.norm);
    layer->k_norm = std::move(k.norm);
    layer->rope = q.rope;
    TESSERA_ASSIGN_OR_RETURN(const ValueId output, OnlyUserOf(attention, Op::kLinear));
    TESSERA_ASSIGN_OR_RETURN(layer->output, LinearOf(output));
    return AddTo(stream, output);
  }

  Result<ValueId> MatchFfn(ValueId stream, MatchedLayer* layer) const {
    TESSERA_ASSIGN_OR_RETURN(const ValueId norm, UserOf(stream, Op::kRmsNorm));
    TESSERA_ASSIGN_OR_RETURN(layer->ffn_norm, NormOf(norm));
    const std::vector<ValueId>& users = users_[norm.index];
    if (users.size() != 2 || g_.node(users[0]).op != Op::kLinear ||
        g_.node(users[1]).op != Op::kLinear)
      return Fail(Wrong(norm, "gate and up projections"));
    const auto is_activation = [&](ValueId id) {
      return g_.node(id).op == Op::kSilu || g_.node(id).op == Op::kGeluTanh;
    };
    const auto activated = [&](ValueId linear) {
      return users_[linear.index].size() == 1 && is_activation(users_[linear.index][0]);
    };
    const bool first = activated(users[0]);
    if (first == activated(users[1])) return Fail(Wrong(norm, "one activated projection"));
    const ValueId gate = first ? users[0] : users[1];
    const ValueId up = first ? users[1] : users[0];
    TESSERA_ASSIGN_OR_RETURN(layer->gate, LinearOf(gate));
    TESSERA_ASSIGN_OR_RETURN(layer->up, LinearOf(up));
    if (!layer->gate.bias.empty() || !layer->up.bias.empty())
      return Fail(Wrong(gate, "gate and up without bias"));
    const ValueId activation = users_[gate.index][0];
    layer->activation = g_.node(activation).op == Op::kSilu ? bundle::Activation::kSilu
                                                            : bundle::Activation::kGeluTanh;
    TESSERA_ASSIGN_OR_RETURN(const ValueId product, OnlyUserOf(activation, Op::kMul));
    TESSERA_ASSIGN_OR_RETURN(const ValueId same, OnlyUserOf(up, Op::kMul));
    if (!(product == same)) return Fail(Wrong(product, "activated gate times up"));
    TESSERA_ASSIGN_OR_RETURN(const ValueId down, OnlyUserOf(product, Op::kLinear));
    TESSERA_ASSIGN_OR_RETURN(layer->down, LinearOf(down));
    return AddTo(stream, down);
  }

  Status MatchHead(ValueId stream, MatchedModel* model) const {
    TESSERA_ASSIGN_OR_RETURN(const ValueId norm, OnlyUserOf(stream, Op::kRmsNorm));
    TESSERA_ASSIGN_OR_RETURN(model->final_norm, NormOf(norm));
    TESSERA_ASSIGN_OR_RETURN(const ValueId head, OnlyUserOf(norm, Op::kLinear));
    TESSERA_ASSIGN_OR_RETURN(model->head, LinearOf(head));
    if (!model->head.bias.empty()) return Wrong(head, "a head without bias");
    return StatusOf(OnlyUserOf(head, Op::kOutput));
  }

  const Graph& g_;
  const std::vector<std::vector<ValueId>> users_;
};

}  // namespace

Status MatchLayers(Module* module) {
  TESSERA_ASSIGN_OR_RETURN(module->matched, Matcher(module->graph).Match());
  return {};
}

}  // namespace tessera::compiler
