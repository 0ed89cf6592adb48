// SPDX-License-Identifier: Apache-2.0
//
// Module: what the passes work on. Begins as a graph, ends as a program with a recipe for every
// weight. Plain data, one thread; each field says which pass fills it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bundle/manifest.h"
#include "bundle/program.h"
#include "compiler/compile.h"
#include "compiler/weight_format.h"
#include "formats/parameter_index.h"
#include "graph/ir.h"

namespace tessera::compiler {

/// Rows first, first + step, ... of a source tensor (elements of a vector), `count` of them.
struct RowRun {
  static constexpr int32_t kZeros = -1;
  int32_t source = 0;  // Index into Recipe::sources, or kZeros.
  int64_t first = 0;
  int64_t count = 0;
  int64_t step = 1;
  bool operator==(const RowRun&) const = default;
};
using RowRuns = std::vector<RowRun>;

/// Rows [begin, begin + count) of what the runs list.
RowRuns Slice(const RowRuns& runs, int64_t begin, int64_t count);
int64_t CountRows(const RowRuns& runs);

/// Columns between a gated step and its projection: whole groups of the packed layout.
int64_t PaddedFfnColumns(int64_t columns);

/// How the bytes of one weight of the program are made from source tensors.
struct Recipe {
  std::vector<std::string> sources;  // Names in the parameter index.
  /// Of each source: how much its inputs matter where the weight is quantised; null: all alike.
  std::vector<const std::vector<float>*> importances;
  RowRuns runs;             // All rows of the weight in order; elements for a vector.
  int64_t first_input = 0;  // Of the sources' rows, the weight's k from here on.
  int64_t inputs = 0;       // Of a whole row of the sources, in the weight's format; 0: k.
};

// What MatchLayers finds. Values by their parameter's name; empty = absent.

struct MatchedNorm {
  std::string weight;
  double eps = 0;
};

struct MatchedLinear {
  std::string weight;
  std::string bias;
  int64_t rows = 0;
  int64_t columns = 0;
};

struct MatchedLayer {
  MatchedNorm attention_norm;
  MatchedLinear q, k, v;
  std::optional<MatchedNorm> q_norm, k_norm;
  std::optional<uint32_t> rope;
  graph::AttentionAttrs attention;
  MatchedLinear output;
  MatchedNorm ffn_norm;
  MatchedLinear gate, up, down;
  bundle::Activation activation = bundle::Activation::kSilu;
  bool join_qkv = false, join_gate_up = false;  // JoinProjections
};

struct MatchedModel {
  std::string embedding;  // [vocabulary, hidden]
  int64_t vocab_size = 0;
  int64_t hidden = 0;
  double embedding_scale = 1;
  std::vector<MatchedLayer> layers;
  MatchedNorm final_norm;
  MatchedLinear head;
};

/// A layer's weights in the program's table.
struct LayerWeights {
  bundle::WeightIndex attention_norm = 0;
  bundle::HeadRows q, k, v;
  std::optional<bundle::WeightIndex> qkv_bias, q_norm, k_norm;
  bundle::WeightIndex output = 0;
  std::optional<bundle::WeightIndex> output_bias;
  bundle::WeightIndex ffn_norm = 0;
  bundle::WeightIndex gate = 0;
  std::optional<bundle::WeightIndex> up;
  bundle::WeightIndex down = 0;
  std::optional<bundle::WeightIndex> down_bias;
};

struct ModelWeights {
  bundle::WeightIndex embedding = 0;
  std::vector<LayerWeights> layers;
  bundle::WeightIndex final_norm = 0;
  bundle::WeightIndex head = 0;
};

struct Module {
  // Given.
  graph::Graph graph;
  const formats::ParameterIndex* index = nullptr;
  CompileOptions options;
  int64_t max_seq_len = 0;

  /// UnifyRopeStyle: how the rows of a parameter must be ordered, source 0 being the parameter
  /// itself. Parameters that are not named keep their order.
  std::map<std::string, RowRuns> row_order;
  MatchedModel matched;                         // MatchLayers
  std::map<std::string, WeightFormat> formats;  // ChooseFormats: by parameter.
  std::vector<Recipe> recipes;                  // FuseWeights: one per weight of the program.
  ModelWeights weights;                         // FuseWeights: where they are in the program.
  bundle::Program program;                      // FuseWeights to ChooseKernels
  bundle::MemoryPlan plan;                      // PlanMemory
  std::vector<std::string> notes;               // For the report.
};

}  // namespace tessera::compiler
