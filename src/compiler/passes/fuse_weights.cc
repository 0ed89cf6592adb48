// SPDX-License-Identifier: Apache-2.0
//
// Weights are added in the order in which a run reads them; that is their order in the archive.
//   q, k, v joined: one matrix, all query heads, then key and value rows per KV head
//   gate, up joined: one matrix, groups of eight rows alternate
//   otherwise: a matrix each
#include <fmt/format.h>

#include "compiler/importance.h"
#include "compiler/passes/passes.h"
#include "compiler/weight_format.h"
#include "kernels/pack.h"
#include "tensor/convert.h"

namespace tessera::compiler {
namespace {

using bundle::HeadRows;
using bundle::Weight;
using bundle::WeightIndex;
using bundle::WeightLayout;
using tensor::DType;

/// A matrix or vector of the source that goes into a weight: its rows in their order.
struct Piece {
  const formats::ParameterEntry* entry = nullptr;
  RowRuns order;  // Source 0.
};

class Fuser {
 public:
  explicit Fuser(Module* module) : m_(*module) {}

  Status Run() {
    const MatchedModel& model = m_.matched;
    const bool tied = model.head.weight == model.embedding;
    if (!tied) {
      TESSERA_ASSIGN_OR_RETURN(m_.weights.embedding, AddTable(model.embedding));
    }
    for (size_t i = 0; i < model.layers.size(); ++i) {
      name_ = fmt::format("layer{}", i);
      LayerWeights layer;
      TESSERA_RETURN_IF_ERROR(
          FuseLayer(model.layers[i], &layer).WithContext(fmt::format("layer {}", i)));
      m_.weights.layers.push_back(layer);
    }
    TESSERA_ASSIGN_OR_RETURN(m_.weights.final_norm,
                             AddVector("final_norm", model.final_norm.weight));
    TESSERA_ASSIGN_OR_RETURN(m_.weights.head, AddMatrix("head", model.head.weight));
    if (tied) m_.weights.embedding = m_.weights.head;
    for (const Conversion& conversion : conversions_) m_.notes.push_back(TextOf(conversion));
    return {};
  }

 private:
  Status FuseLayer(const MatchedLayer& layer, LayerWeights* weights) {
    TESSERA_ASSIGN_OR_RETURN(weights->attention_norm,
                             AddVector(Name("attn_norm"), layer.attention_norm.weight));
    TESSERA_RETURN_IF_ERROR(FuseQkv(layer, weights));
    TESSERA_ASSIGN_OR_RETURN(weights->output, AddMatrix(Name("attn_out"), layer.output.weight));
    TESSERA_ASSIGN_OR_RETURN(weights->output_bias, AddBias(Name("attn_out_bias"), layer.output));
    TESSERA_ASSIGN_OR_RETURN(weights->ffn_norm, AddVector(Name("ffn_norm"), layer.ffn_norm.weight));
    TESSERA_RETURN_IF_ERROR(FuseGateUp(layer, weights));
    TESSERA_ASSIGN_OR_RETURN(weights->down, AddMatrix(Name("down"), layer.down.weight));
    PadDown(weights->down);
    TESSERA_ASSIGN_OR_RETURN(weights->down_bias, AddBias(Name("down_bias"), layer.down));
    return {};
  }

  Status FuseQkv(const MatchedLayer& layer, LayerWeights* weights) {
    const graph::AttentionAttrs& a = layer.attention;
    if (layer.join_qkv) {
      TESSERA_ASSIGN_OR_RETURN(const auto pieces,
                               PiecesOf({layer.q.weight, layer.k.weight, layer.v.weight}));
      const WeightIndex fused = AddPieces(Name("qkv"), pieces, QkvRuns(pieces, a));
      const int64_t kv_row = a.heads * a.head_dim;
      weights->q = {fused, 0, a.head_dim};
      weights->k = {fused, kv_row, 2 * a.head_dim};
      weights->v = {fused, kv_row + a.head_dim, 2 * a.head_dim};
    } else {
      TESSERA_ASSIGN_OR_RETURN(const WeightIndex qi, AddMatrix(Name("q"), layer.q.weight));
      TESSERA_ASSIGN_OR_RETURN(const WeightIndex ki, AddMatrix(Name("k"), layer.k.weight));
      TESSERA_ASSIGN_OR_RETURN(const WeightIndex vi, AddMatrix(Name("v"), layer.v.weight));
      weights->q = {qi, 0, a.head_dim};
      weights->k = {ki, 0, a.head_dim};
      weights->v = {vi, 0, a.head_dim};
    }
    TESSERA_ASSIGN_OR_RETURN(weights->qkv_bias, FuseBias(layer));
    if (layer.q_norm) {
      TESSERA_ASSIGN_OR_RETURN(weights->q_norm, AddVector(Name("q_norm"), layer.q_norm->weight));
    }
    if (layer.k_norm) {
      TESSERA_ASSIGN_OR_RETURN(weights->k_norm, AddVector(Name("k_norm"), layer.k_norm->weight));
    }
    return {};
  }

  /// The column order of bundle/program.h.
  static RowRuns QkvRuns(const std::vector<Piece>& pieces, const graph::AttentionAttrs& a) {
    RowRuns runs;
    Append(&runs, pieces[0].order, 0);
    for (int64_t head = 0; head < a.kv_heads; ++head) {
      Append(&runs, Slice(pieces[1].order, head * a.head_dim, a.head_dim), 1);
      Append(&runs, Slice(pieces[2].order, head * a.head_dim, a.head_dim), 2);
    }
    return runs;
  }

  /// One vector for q, k and v; zeros for a projection without bias.
  Result<std::optional<WeightIndex>> FuseBias(const MatchedLayer& layer) {
    if (layer.q.bias.empty() && layer.k.bias.empty() && layer.v.bias.empty()) return std::nullopt;
    std::vector<Piece> pieces;
    for (const MatchedLinear* linear : {&layer.q, &layer.k, &layer.v}) {
      Piece piece;
      if (linear->bias.empty()) {
        piece.order = {{RowRun::kZeros, 0, linear->rows, 1}};
      } else {
        TESSERA_ASSIGN_OR_RETURN(piece, PieceOf(linear->bias));
      }
      pieces.push_back(std::move(piece));
    }
    TESSERA_ASSIGN_OR_RETURN(
        const WeightIndex bias,
        AddVectorPieces(Name("qkv_bias"), pieces, QkvRuns(pieces, layer.attention)));
    return bias;
  }

  Status FuseGateUp(const MatchedLayer& layer, LayerWeights* weights) {
    TESSERA_ASSIGN_OR_RETURN(auto pieces, PiecesOf({layer.gate.weight, layer.up.weight}));
    for (Piece& piece : pieces) PadRows(&piece);
    if (!layer.join_gate_up) {
      weights->gate = AddPieces(Name("gate"), {pieces[0]}, pieces[0].order);
      weights->up = AddPieces(Name("up"), {pieces[1]}, pieces[1].order);
      return {};
    }
    RowRuns runs;
    const int64_t rows = CountRows(pieces[0].order);
    for (int64_t row = 0; row < rows; row += kernels::kGroupRows) {
      Append(&runs, Slice(pieces[0].order, row, kernels::kGroupRows), 0);
      Append(&runs, Slice(pieces[1].order, row, kernels::kGroupRows), 1);
    }
    weights->gate = AddPieces(Name("gate_up"), pieces, std::move(runs));
    return {};
  }

  /// Gated columns come in whole groups: rows of zeros make columns of zeros, which `down` reads
  /// with weights of zero. Formats of blocks have whole groups anyway.
  static void PadRows(Piece* piece) {
    const int64_t rows = CountRows(piece->order);
    if (const int64_t missing = PaddedFfnColumns(rows) - rows; missing > 0)
      piece->order.push_back({RowRun::kZeros, 0, missing, 1});
  }
  void PadDown(WeightIndex down) {
    Weight& weight = m_.program.weights[static_cast<size_t>(down)];
    weight.k = PaddedFfnColumns(weight.k);
    weight.bytes = kernels::PackedBytes(weight.dtype, weight.n, weight.k);
  }

  std::string Name(std::string_view what) const { return fmt::format("{}.{}", name_, what); }

  static void Append(RowRuns* runs, const RowRuns& more, int32_t source) {
    for (RowRun run : more) {
      if (run.source != RowRun::kZeros) run.source = source;
      runs->push_back(run);
    }
  }

  Result<Piece> PieceOf(const std::string& name) const {
    Piece piece;
    piece.entry = m_.index->Find(name);
    if (piece.entry == nullptr) return Fail(NotFound(fmt::format("parameter {}", name)));
    const bool vector = piece.entry->shape.rows() == 1;
    const int64_t rows = vector ? piece.entry->shape.columns() : piece.entry->shape.rows();
    const auto order = m_.row_order.find(name);
    piece.order = order == m_.row_order.end() ? RowRuns{{0, 0, rows, 1}} : order->second;
    return piece;
  }

  Result<std::vector<Piece>> PiecesOf(const std::vector<std::string>& names) const {
    std::vector<Piece> pieces;
    for (const std::string& name : names) {
      TESSERA_ASSIGN_OR_RETURN(Piece piece, PieceOf(name));
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  const WeightFormat& FormatOf(const std::string& name) const { return m_.formats.at(name); }

  /// ChooseFormats has compared its size.
  const std::vector<float>* ImportanceOf(const std::string& name) const {
    const auto format = m_.formats.find(name);
    const bool quantised = format != m_.formats.end() && format->second.is_quantised;
    if (!quantised || m_.options.importance == nullptr) return nullptr;
    return m_.options.importance->Find(name);
  }

  /// Weights that were converted in the same way for the same reason: one note, not one each.
  struct Conversion {
    std::string what;  // "converted from BF16 to F32"
    std::string_view why;
    std::string first;  // The weight's entry.
    int64_t count = 0;
  };
  void CountConversion(const Weight& weight, std::string_view why) {
    std::string what = fmt::format("{} to {}", weight.note, tensor::Name(weight.dtype));
    for (Conversion& known : conversions_)
      if (known.what == what && known.why == why) {
        ++known.count;
        return;
      }
    conversions_.push_back({std::move(what), why, weight.entry, 1});
  }
  static std::string TextOf(const Conversion& conversion) {
    const std::string names =
        conversion.count == 1
            ? conversion.first
            : fmt::format("{} weights, {} the first", conversion.count, conversion.first);
    return fmt::format("{}: {}{}{}", names, conversion.what, conversion.why.empty() ? "" : ": ",
                       conversion.why);
  }

  WeightIndex Push(Weight weight, const std::vector<Piece>& pieces, RowRuns runs) {
    Recipe recipe;
    int64_t row = 0;
    for (const Piece& piece : pieces) {
      recipe.sources.push_back(piece.entry == nullptr ? std::string() : piece.entry->name);
      recipe.importances.push_back(ImportanceOf(recipe.sources.back()));
      const int64_t rows = CountRows(piece.order);
      weight.parts.push_back({recipe.sources.back(), row, rows});
      row += rows;
    }
    recipe.runs = std::move(runs);
    // Of quantised ones ChooseFormats gives the sums.
    if (!weight.note.empty() && !m_.formats.at(recipe.sources[0]).is_quantised)
      CountConversion(weight, m_.formats.at(recipe.sources[0]).why);
    m_.program.weights.push_back(std::move(weight));
    m_.recipes.push_back(std::move(recipe));
    return std::ssize(m_.program.weights) - 1;
  }

  WeightIndex AddPieces(std::string entry, const std::vector<Piece>& pieces, RowRuns runs) {
    const WeightFormat& format = FormatOf(pieces[0].entry->name);
    Weight weight;
    weight.entry = std::move(entry);
    weight.layout = WeightLayout::kPacked8;
    weight.dtype = format.dtype;
    weight.note = format.note;
    weight.n = CountRows(runs);
    weight.k = pieces[0].entry->shape.columns();
    weight.bytes = kernels::PackedBytes(weight.dtype, weight.n, weight.k);
    return Push(std::move(weight), pieces, std::move(runs));
  }

  Result<WeightIndex> AddMatrix(std::string entry, const std::string& name) {
    TESSERA_ASSIGN_OR_RETURN(const Piece piece, PieceOf(name));
    return AddPieces(std::move(entry), {piece}, piece.order);
  }

  Result<WeightIndex> AddVectorPieces(std::string entry, const std::vector<Piece>& pieces,
                                      RowRuns runs) {
    for (const Piece& piece : pieces)
      if (piece.entry != nullptr && !tensor::CanConvertToFloat(piece.entry->dtype))
        return Fail(Unimplemented(
            fmt::format("{} of type {}", piece.entry->name, tensor::Name(piece.entry->dtype))));
    Weight weight;
    weight.entry = std::move(entry);
    weight.layout = WeightLayout::kRows;
    weight.dtype = DType::kF32;
    weight.n = 1;
    weight.k = CountRows(runs);
    weight.bytes = weight.k * static_cast<int64_t>(sizeof(float));
    return Push(std::move(weight), pieces, std::move(runs));
  }

  Result<WeightIndex> AddVector(std::string entry, const std::string& name) {
    TESSERA_ASSIGN_OR_RETURN(const auto pieces, PiecesOf({name}));
    RowRuns runs = pieces[0].order;
    return AddVectorPieces(std::move(entry), pieces, std::move(runs));
  }

  Result<std::optional<WeightIndex>> AddBias(std::string entry, const MatchedLinear& linear) {
    if (linear.bias.empty()) return std::nullopt;
    TESSERA_ASSIGN_OR_RETURN(const WeightIndex bias, AddVector(std::move(entry), linear.bias));
    return bias;
  }

  /// An untied embedding table.
  Result<WeightIndex> AddTable(const std::string& name) {
    TESSERA_ASSIGN_OR_RETURN(const auto pieces, PiecesOf({name}));
    const formats::ParameterEntry& entry = *pieces[0].entry;
    const WeightFormat& format = FormatOf(name);
    Weight weight;
    weight.entry = "embedding";
    weight.layout = WeightLayout::kRows;
    weight.dtype = format.dtype;
    weight.note = format.note;
    weight.n = entry.shape.rows();
    weight.k = entry.shape.columns();
    TESSERA_ASSIGN_OR_RETURN(const uint64_t row,
                             tensor::RowBytes(weight.dtype, static_cast<uint64_t>(weight.k)));
    weight.bytes = weight.n * static_cast<int64_t>(row);
    RowRuns runs = pieces[0].order;
    return Push(std::move(weight), pieces, std::move(runs));
  }

  Module& m_;
  std::string name_;
  std::vector<Conversion> conversions_;
};

}  // namespace

Status FuseWeights(Module* module) {
  return Fuser(module).Run();
}

}  // namespace tessera::compiler
