// SPDX-License-Identifier: Apache-2.0
//
// Program: a model compiled for the CPU target, as data: what weights there are and how they lie in
// model.irpa, what buffers a step needs, and the fused steps in order. program.json is its text.
// The compiler writes it, the runtime binds it; neither knows anything else of the other.
//
// A *step* here is one fused operation over all rows (tokens) of a model run. Column order of the
// q/k/v product: all query heads, then for each KV head its key columns and its value columns.
// Plain values; VerifyProgram (program_verify.h) proves every precondition of the kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace tessera::bundle {

inline constexpr int64_t kProgramVersion = 1;

/// How a weight's bytes lie in the archive.
enum class WeightLayout : uint8_t {
  kPacked8,   // "p8": groups of eight output rows, interleaved for the matmul kernels.
  kRows,      // "rows": row after row in the file's own format: vectors, untied embedding tables.
  kSegments,  // "p8s": a p8 matrix for each segment of k, in their order. Of ranks only (shard.h).
};

/// Rows [row_begin, row_begin + rows) of a weight came from the source tensor of that name.
struct WeightPart {
  std::string source;
  int64_t row_begin = 0;
  int64_t rows = 0;
  bool operator==(const WeightPart&) const = default;
};

struct Weight {
  std::string entry;  // Name in model.irpa.
  WeightLayout layout = WeightLayout::kPacked8;
  tensor::DType dtype = tensor::DType::kF32;
  int64_t n = 0;         // Output rows; 1 for a vector.
  int64_t k = 0;         // Inputs; the length of a vector.
  int64_t segments = 1;  // Parts of k that are summed apart, then left to right (kernels/matmul.h).
  int64_t bytes = 0;     // Of the archive's entry.
  std::vector<WeightPart> parts;  // For people; gate/up interleave and head order are the step's.
  std::string note;               // What the compiler changed: "converted from IQ4_XS"; or empty.
  bool operator==(const Weight&) const = default;
};

enum class BufferKind : uint8_t {
  kFloat,      // "f32": [rows][columns]
  kQuantised,  // "q8": int8 codes in blocks of 32 with their scales (kernels/matmul.h)
  kBFloat16,   // "bf16": numbers rounded to bfloat16, in blocks of 32
};

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kFloat;
  int64_t columns = 0;
  bool operator==(const Buffer&) const = default;
};

/// Pair i turns by position * inverse_frequency[i], pairs are (i, i + rotary_dim / 2).
struct Rope {
  int64_t rotary_dim = 0;
  std::vector<double> inverse_frequency;  // [rotary_dim / 2]
  double attention_factor = 1;            // Multiplies cos and sin.
  bool operator==(const Rope&) const = default;
};

// Indices into Program's tables.
using WeightIndex = int64_t;
using BufferIndex = int64_t;

/// RMS norm over the columns of a buffer.
struct Norm {
  WeightIndex weight = 0;  // F32 vector
  double eps = 0;
  bool operator==(const Norm&) const = default;
};

/// out = table[token] * scale
struct EmbedStep {
  WeightIndex table = 0;
  BufferIndex out = 0;
  double scale = 1;
  bool operator==(const EmbedStep&) const = default;
};

/// Head h of a projection is rows [row + h * stride, + head_dim) of the weight.
struct HeadRows {
  WeightIndex weight = 0;
  int64_t row = 0;
  int64_t stride = 0;
  bool operator==(const HeadRows&) const = default;
};

/// norm, q/k/v projections, bias, head norms, rope; q to `out`, k and v to the KV cache of `layer`.
struct QkvStep {
  int64_t layer = 0;
  BufferIndex in = 0;
  BufferIndex out = 0;
  Norm norm;
  HeadRows q, k, v;
  std::optional<WeightIndex> bias;  // F32 vector in the column order above.
  std::optional<Norm> q_norm, k_norm;
  std::optional<int64_t> rope;  // Index into Program::ropes.
  bool operator==(const QkvStep&) const = default;
};

struct AttentionStep {
  int64_t layer = 0;
  BufferIndex in = 0;
  BufferIndex out = 0;
  double scale = 1;
  int64_t window = 0;  // 0 = all positions
  double softcap = 0;  // 0 = none
  bool operator==(const AttentionStep&) const = default;
};

/// residual += in * weight^T + bias
struct ProjectStep {
  BufferIndex in = 0;
  BufferIndex residual = 0;
  WeightIndex weight = 0;
  std::optional<WeightIndex> bias;
  bool operator==(const ProjectStep&) const = default;
};

enum class Activation : uint8_t { kSilu, kGeluTanh };

/// out = activation(norm(in) * gate^T) * (norm(in) * up^T)
struct GatedStep {
  BufferIndex in = 0;
  BufferIndex out = 0;
  Norm norm;
  Activation activation = Activation::kSilu;
  WeightIndex gate = 0;  // Without `up`: groups of eight rows of gate and up alternate.
  std::optional<WeightIndex> up;
  bool operator==(const GatedStep&) const = default;
};

/// logits = norm(in) * weight^T, for the rows that want them.
struct HeadStep {
  BufferIndex in = 0;
  Norm norm;
  WeightIndex weight = 0;
  bool operator==(const HeadStep&) const = default;
};

struct Step {
  std::string label;  // "layer3.attention"
  std::variant<EmbedStep, QkvStep, AttentionStep, ProjectStep, GatedStep, HeadStep> op;
  /// Kernels that the compiler expects for one and for many rows; a note: the runtime asks the
  /// catalog for the machine it runs on, and all kernels of one format give the same bits.
  std::string kernel_one, kernel_many;
  bool operator==(const Step&) const = default;
};

struct Dims {
  int64_t hidden = 0;
  int64_t vocab_size = 0;
  int64_t layers = 0;  // KV caches.
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_seq_len = 0;
  int64_t page_tokens = 0;
  bool operator==(const Dims&) const = default;
};

struct Program {
  int64_t version = kProgramVersion;
  std::string target = "cpu";
  Dims dims;
  std::vector<Rope> ropes;
  std::vector<Weight> weights;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  bool operator==(const Program&) const = default;
};

/// "embed", "qkv", "attention", "project", "gated", "head"
std::string_view StepName(const Step& step);
std::string_view LayoutName(WeightLayout layout);

/// Real numbers are written as decimal strings of shortest exact form, so that a program read back
/// equals the one written, bit for bit.
std::string WriteProgram(const Program& program);

/// Parses and checks types, names and limits. The result may still be nonsense: VerifyProgram.
/// kInvalidArgument names the field ("steps[7].norm.weight"), kUnimplemented a version or a word we
/// do not know.
Result<Program> ReadProgram(std::string_view text, std::string_view where);

}  // namespace tessera::bundle
