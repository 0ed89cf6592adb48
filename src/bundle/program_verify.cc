// SPDX-License-Identifier: Apache-2.0
#include "bundle/program_verify.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "bundle/limits.h"
#include "bundle/manifest.h"
#include "bundle/shard.h"

namespace tessera::bundle {
namespace {

constexpr int64_t kGroupRows = 8;        // Of layout p8.
constexpr int64_t kQuantBlock = 32;      // Of activations.
constexpr int64_t kKernelHeadDim = 256;  // What the attention kernels take.
constexpr int64_t kKvBlock = 16;

template <class... Args>
Status Wrong(fmt::format_string<Args...> format, Args&&... args) {
  return InvalidArgument(fmt::format(format, std::forward<Args>(args)...));
}

Status VerifyDims(const Dims& d) {
  if (d.hidden < 1 || d.vocab_size < 1 || d.layers < 1 || d.heads < 1 || d.kv_heads < 1 ||
      d.head_dim < 1 || d.max_seq_len < 1 || d.page_tokens < 1)
    return Wrong("dims: a size is not positive");
  if (d.heads % d.kv_heads != 0)
    return Wrong("dims: {} heads are not a multiple of {} KV heads", d.heads, d.kv_heads);
  if (d.head_dim % kGroupRows != 0 || d.head_dim > kKernelHeadDim)
    return Wrong("dims: head_dim {} is not a multiple of {} up to {}", d.head_dim, kGroupRows,
                 kKernelHeadDim);
  if (d.page_tokens % kKvBlock != 0)
    return Wrong("dims: page_tokens {} is not a multiple of {}", d.page_tokens, kKvBlock);
  return {};
}

Status VerifyRope(const Rope& rope, const Dims& dims, size_t index) {
  if (rope.rotary_dim % 2 != 0 || rope.rotary_dim < 2 || rope.rotary_dim > dims.head_dim)
    return Wrong("ropes[{}]: rotary_dim {} is not even or exceeds head_dim {}", index,
                 rope.rotary_dim, dims.head_dim);
  if (static_cast<int64_t>(rope.inverse_frequency.size()) != rope.rotary_dim / 2)
    return Wrong("ropes[{}]: {} frequencies for rotary_dim {}", index,
                 rope.inverse_frequency.size(), rope.rotary_dim);
  for (const double frequency : rope.inverse_frequency)
    if (!std::isfinite(frequency) || std::abs(frequency) > 1e6)
      return Wrong("ropes[{}]: frequency {} is out of range", index, frequency);
  if (!std::isfinite(rope.attention_factor))
    return Wrong("ropes[{}]: attention_factor is not finite", index);
  return {};
}

Status VerifyWeight(const Weight& weight) {
  const auto block = static_cast<int64_t>(tensor::Info(weight.dtype).block_elements);
  if (weight.n < 1 || weight.k < 1 || weight.segments < 1 || weight.bytes < 1)
    return Wrong("weight {}: a size is not positive", weight.entry);
  if (weight.k % block != 0)
    return Wrong("weight {}: k {} is not a multiple of the {} elements of a block", weight.entry,
                 weight.k, block);
  // Bfloat16 activations come in blocks, too.
  const bool in_blocks = InputKind(weight.dtype) == BufferKind::kBFloat16 && weight.segments > 1;
  if (weight.k % weight.segments != 0 || (weight.k / weight.segments) % block != 0 ||
      (in_blocks && (weight.k / weight.segments) % kQuantBlock != 0))
    return Wrong("weight {}: k {} does not divide into {} segments of whole blocks", weight.entry,
                 weight.k, weight.segments);
  if (weight.layout == WeightLayout::kSegments)
    return Wrong("weight {}: layout p8s is for the weights of one rank", weight.entry);
  if (weight.layout == WeightLayout::kRows && weight.segments != 1)
    return Wrong("weight {}: layout rows has no segments", weight.entry);
  return {};
}

/// Follows the steps with the tables at hand; the first complaint wins.
class StepVerifier {
 public:
  explicit StepVerifier(const Program& program) : program_(program), dims_(program.dims) {}

  Status operator()(const EmbedStep& step) const {
    TESSERA_RETURN_IF_ERROR(NeedWeight(step.table, dims_.vocab_size, dims_.hidden));
    if (!std::isfinite(step.scale)) return Wrong("scale is not finite");
    return NeedFloat(step.out, dims_.hidden);
  }

  Status operator()(const QkvStep& step) const {
    TESSERA_RETURN_IF_ERROR(NeedLayer(step.layer));
    TESSERA_RETURN_IF_ERROR(NeedFloat(step.in, dims_.hidden));
    TESSERA_RETURN_IF_ERROR(NeedFloat(step.out, dims_.heads * dims_.head_dim));
    TESSERA_RETURN_IF_ERROR(NeedNorm(step.norm, dims_.hidden));
    TESSERA_RETURN_IF_ERROR(NeedHeads("q", step.q, dims_.heads));
    TESSERA_RETURN_IF_ERROR(NeedHeads("k", step.k, dims_.kv_heads));
    TESSERA_RETURN_IF_ERROR(NeedHeads("v", step.v, dims_.kv_heads));
    if (step.bias)
      TESSERA_RETURN_IF_ERROR(
          NeedVector(*step.bias, (dims_.heads + 2 * dims_.kv_heads) * dims_.head_dim));
    if (step.q_norm) TESSERA_RETURN_IF_ERROR(NeedNorm(*step.q_norm, dims_.head_dim));
    if (step.k_norm) TESSERA_RETURN_IF_ERROR(NeedNorm(*step.k_norm, dims_.head_dim));
    if (step.rope && (*step.rope < 0 || *step.rope >= std::ssize(program_.ropes)))
      return Wrong("rope {} of {}", *step.rope, program_.ropes.size());
    return {};
  }

  Status operator()(const AttentionStep& step) const {
    TESSERA_RETURN_IF_ERROR(NeedLayer(step.layer));
    TESSERA_RETURN_IF_ERROR(NeedFloat(step.in, dims_.heads * dims_.head_dim));
    TESSERA_RETURN_IF_ERROR(NeedBuffer(step.out, dims_.heads * dims_.head_dim));
    const Buffer& out = program_.buffers[static_cast<size_t>(step.out)];
    const int64_t head_columns = dims_.heads / dims_.kv_heads * dims_.head_dim;
    if (out.kind != BufferKind::kFloat && head_columns % kQuantBlock != 0)
      return Wrong("{} columns of a KV head's query heads are no whole blocks of {}", head_columns,
                   kQuantBlock);
    if (!std::isfinite(step.scale) || !std::isfinite(step.softcap) || step.softcap < 0 ||
        step.window < 0)
      return Wrong("scale, window or softcap is out of range");
    return {};
  }

  Status operator()(const ProjectStep& step) const {
    TESSERA_RETURN_IF_ERROR(NeedMatmul(step.weight, dims_.hidden));
    const Weight& weight = WeightAt(step.weight);
    TESSERA_RETURN_IF_ERROR(NeedInput(step.in, weight));
    if (step.bias) TESSERA_RETURN_IF_ERROR(NeedVector(*step.bias, dims_.hidden));
    return NeedFloat(step.residual, dims_.hidden);
  }

  Status operator()(const GatedStep& step) const {
    TESSERA_RETURN_IF_ERROR(NeedFloat(step.in, dims_.hidden));
    TESSERA_RETURN_IF_ERROR(NeedNorm(step.norm, dims_.hidden));
    TESSERA_RETURN_IF_ERROR(NeedIndex(step.out, program_.buffers.size(), "buffer"));
    const Buffer& out = program_.buffers[static_cast<size_t>(step.out)];
    const int64_t rows = step.up ? out.columns : 2 * out.columns;
    TESSERA_RETURN_IF_ERROR(NeedMatmul(step.gate, rows, dims_.hidden));
    if (out.columns % kGroupRows != 0)
      return Wrong("{} columns are not a multiple of {}", out.columns, kGroupRows);
    return step.up ? NeedMatmul(*step.up, rows, dims_.hidden) : Status();
  }

  Status operator()(const HeadStep& step) const {
    TESSERA_RETURN_IF_ERROR(NeedFloat(step.in, dims_.hidden));
    TESSERA_RETURN_IF_ERROR(NeedNorm(step.norm, dims_.hidden));
    return NeedMatmul(step.weight, dims_.vocab_size, dims_.hidden);
  }

 private:
  const Weight& WeightAt(WeightIndex index) const {
    return program_.weights[static_cast<size_t>(index)];
  }

  static Status NeedIndex(int64_t index, size_t count, std::string_view what) {
    if (index < 0 || index >= static_cast<int64_t>(count))
      return Wrong("{} {} of {}", what, index, count);
    return {};
  }

  Status NeedLayer(int64_t layer) const {
    return NeedIndex(layer, static_cast<size_t>(dims_.layers), "layer");
  }

  Status NeedWeight(WeightIndex index, int64_t n, int64_t k) const {
    TESSERA_RETURN_IF_ERROR(NeedIndex(index, program_.weights.size(), "weight"));
    const Weight& weight = WeightAt(index);
    if (weight.n != n || weight.k != k)
      return Wrong("weight {} is [{},{}], expected [{},{}]", weight.entry, weight.n, weight.k, n,
                   k);
    return {};
  }

  Status NeedVector(WeightIndex index, int64_t k) const {
    TESSERA_RETURN_IF_ERROR(NeedWeight(index, 1, k));
    const Weight& weight = WeightAt(index);
    if (weight.layout != WeightLayout::kRows || weight.dtype != tensor::DType::kF32)
      return Wrong("weight {} is no F32 vector in layout rows", weight.entry);
    return {};
  }

  Status NeedNorm(const Norm& norm, int64_t columns) const {
    TESSERA_RETURN_IF_ERROR(NeedVector(norm.weight, columns));
    if (!(norm.eps >= 0) || norm.eps > 1) return Wrong("eps {} is out of range", norm.eps);
    return {};
  }

  /// A packed matrix of n rows; k as given, or any.
  Status NeedMatmul(WeightIndex index, int64_t n, int64_t k = 0) const {
    TESSERA_RETURN_IF_ERROR(NeedIndex(index, program_.weights.size(), "weight"));
    const Weight& weight = WeightAt(index);
    TESSERA_RETURN_IF_ERROR(NeedWeight(index, n, k == 0 ? weight.k : k));
    if (weight.layout != WeightLayout::kPacked8)
      return Wrong("weight {} is not packed", weight.entry);
    if (InputKind(weight.dtype) == BufferKind::kQuantised && weight.k % kQuantBlock != 0)
      return Wrong("weight {}: k {} is no multiple of {}", weight.entry, weight.k, kQuantBlock);
    return {};
  }

  Status NeedHeads(std::string_view name, const HeadRows& rows, int64_t heads) const {
    TESSERA_RETURN_IF_ERROR(
        NeedIndex(rows.weight, program_.weights.size(), fmt::format("{} weight", name)));
    const Weight& weight = WeightAt(rows.weight);
    TESSERA_RETURN_IF_ERROR(NeedMatmul(rows.weight, weight.n, dims_.hidden));
    if (rows.row < 0 || rows.row % kGroupRows != 0 || rows.stride % kGroupRows != 0 ||
        rows.stride < dims_.head_dim ||
        rows.row + (heads - 1) * rows.stride + dims_.head_dim > weight.n)
      return Wrong("{} heads at row {} by {} do not fit weight {} of {} rows", name, rows.row,
                   rows.stride, weight.entry, weight.n);
    return {};
  }

  Status NeedBuffer(BufferIndex index, int64_t columns) const {
    TESSERA_RETURN_IF_ERROR(NeedIndex(index, program_.buffers.size(), "buffer"));
    const Buffer& buffer = program_.buffers[static_cast<size_t>(index)];
    if (buffer.columns != columns)
      return Wrong("buffer {} has {} columns, expected {}", buffer.name, buffer.columns, columns);
    return {};
  }

  Status NeedFloat(BufferIndex index, int64_t columns) const {
    TESSERA_RETURN_IF_ERROR(NeedBuffer(index, columns));
    const Buffer& buffer = program_.buffers[static_cast<size_t>(index)];
    if (buffer.kind != BufferKind::kFloat) return Wrong("buffer {} is not f32", buffer.name);
    return {};
  }

  Status NeedInput(BufferIndex index, const Weight& weight) const {
    TESSERA_RETURN_IF_ERROR(NeedBuffer(index, weight.k));
    const Buffer& buffer = program_.buffers[static_cast<size_t>(index)];
    // A float buffer is brought into another form by the step that reads it; the way back is lost.
    if (buffer.kind != BufferKind::kFloat && buffer.kind != InputKind(weight.dtype))
      return Wrong("buffer {} has the wrong kind for weight {} of type {}", buffer.name,
                   weight.entry, tensor::Name(weight.dtype));
    return {};
  }

  const Program& program_;
  const Dims& dims_;
};

/// The name of step `index` in the fixed order, and the layer that it must carry.
std::string_view ExpectedName(const Program& program, size_t index) {
  constexpr std::string_view kLayer[] = {"qkv", "attention", "project", "gated", "project"};
  if (index == 0) return "embed";
  if (index == program.steps.size() - 1) return "head";
  return kLayer[(index - 1) % std::size(kLayer)];
}

Status VerifyOrder(const Program& program) {
  const int64_t expected = 2 + 5 * program.dims.layers;
  if (std::ssize(program.steps) != expected)
    return Wrong("{} steps, expected {} for {} layers", program.steps.size(), expected,
                 program.dims.layers);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    if (StepName(step) != ExpectedName(program, i))
      return Wrong("steps[{}] is {}, expected {}", i, StepName(step), ExpectedName(program, i));
    const auto layer = static_cast<int64_t>((i - 1) / 5);
    const auto* qkv = std::get_if<QkvStep>(&step.op);
    const auto* attention = std::get_if<AttentionStep>(&step.op);
    if ((qkv != nullptr && qkv->layer != layer) ||
        (attention != nullptr && attention->layer != layer))
      return Wrong("steps[{}] {} is not of layer {}", i, step.label, layer);
  }
  return {};
}

/// Data flows through the buffers as the order says: nothing is overwritten before it is read.
Status VerifyFlow(const Program& program) {
  const BufferIndex stream = std::get<EmbedStep>(program.steps.front().op).out;
  for (size_t i = 1; i + 1 < program.steps.size(); i += 5) {
    const auto& qkv = std::get<QkvStep>(program.steps[i].op);
    const auto& attention = std::get<AttentionStep>(program.steps[i + 1].op);
    const auto& output = std::get<ProjectStep>(program.steps[i + 2].op);
    const auto& gated = std::get<GatedStep>(program.steps[i + 3].op);
    const auto& down = std::get<ProjectStep>(program.steps[i + 4].op);
    const bool chained = qkv.in == stream && attention.in == qkv.out &&
                         output.in == attention.out && output.residual == stream &&
                         gated.in == stream && down.in == gated.out && down.residual == stream;
    const bool apart = qkv.out != stream && attention.out != stream && gated.out != stream &&
                       attention.out != attention.in;
    if (!chained || !apart)
      return Wrong("{}: the layer's buffers are not chained", program.steps[i].label);
  }
  if (std::get<HeadStep>(program.steps.back().op).in != stream)
    return Wrong("head does not read the residual stream");
  return {};
}

}  // namespace

BufferKind InputKind(tensor::DType dtype) {
  if (dtype == tensor::DType::kBF16) return BufferKind::kBFloat16;
  return tensor::IsQuantised(dtype) ? BufferKind::kQuantised : BufferKind::kFloat;
}

Status VerifyProgram(const Program& program) {
  if (program.target != "cpu")
    return Unimplemented(fmt::format("a program for target \"{:.40}\"", program.target));
  TESSERA_RETURN_IF_ERROR(VerifyDims(program.dims));
  for (size_t i = 0; i < program.ropes.size(); ++i)
    TESSERA_RETURN_IF_ERROR(VerifyRope(program.ropes[i], program.dims, i));
  for (const Weight& weight : program.weights) TESSERA_RETURN_IF_ERROR(VerifyWeight(weight));
  for (const Buffer& buffer : program.buffers)
    if (buffer.columns < 1 ||
        (buffer.kind != BufferKind::kFloat && buffer.columns % kQuantBlock != 0))
      return Wrong("buffer {} has {} columns, expected whole blocks of {}", buffer.name,
                   buffer.columns, kQuantBlock);
  TESSERA_RETURN_IF_ERROR(VerifyOrder(program));
  const StepVerifier verifier(program);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    TESSERA_RETURN_IF_ERROR(
        std::visit(verifier, step.op).WithContext(fmt::format("steps[{}] {}", i, step.label)));
  }
  return VerifyFlow(program);
}

namespace {

/// The file that an entry belongs into: "NAME.shard.3" is of rank 3.
std::string ArchiveOf(const std::string& entry) {
  const size_t shard = entry.rfind(kShardSuffix);
  if (shard == std::string::npos) return std::string(kParametersFile);
  int64_t rank = 0;
  std::from_chars(entry.data() + shard + kShardSuffix.size(), entry.data() + entry.size(), rank);
  return RankFile(kParametersFile, rank);
}

}  // namespace

Status VerifyArchive(const Program& program, const formats::ParameterIndex& archive) {
  for (const Weight& weight : program.weights) {
    const formats::ParameterEntry* entry = archive.Find(weight.entry);
    const auto wrong = [&](const std::string& what) {
      const std::string file = entry == nullptr
                                   ? ArchiveOf(weight.entry)
                                   : archive.files()[entry->file].path.filename().string();
      return DataLoss(fmt::format("{}: entry {} {}", file, weight.entry, what));
    };
    if (entry == nullptr) return wrong("is missing, program.json names it");
    if (entry->bytes != static_cast<uint64_t>(weight.bytes))
      return wrong(fmt::format("has {} bytes, program.json says {}", entry->bytes, weight.bytes));
    if (!entry->splat && entry->offset % 64 != 0)
      return wrong(fmt::format("begins at {}, expected a multiple of 64", entry->offset));
  }
  return {};
}

}  // namespace tessera::bundle
