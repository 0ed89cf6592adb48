// SPDX-License-Identifier: Apache-2.0
//
// The text form of a program. Writing and reading stand side by side, one pair a struct.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "bundle/json_fields.h"
#include "bundle/limits.h"
#include "bundle/program.h"

namespace tessera::bundle {
namespace {

using json::Array;
using json::Object;
using json::Value;

template <class T>
using Words = std::pair<std::string_view, T>;

constexpr std::array<Words<WeightLayout>, 3> kLayouts = {{{"p8", WeightLayout::kPacked8},
                                                          {"rows", WeightLayout::kRows},
                                                          {"p8s", WeightLayout::kSegments}}};
constexpr std::array<Words<BufferKind>, 3> kKinds = {
    {{"f32", BufferKind::kFloat}, {"q8", BufferKind::kQuantised}, {"bf16", BufferKind::kBFloat16}}};
constexpr std::array<Words<Activation>, 2> kActivations = {
    {{"silu", Activation::kSilu}, {"gelu_tanh", Activation::kGeluTanh}}};
constexpr std::array<std::string_view, 6> kStepNames = {"embed",   "qkv",   "attention",
                                                        "project", "gated", "head"};

template <class T, size_t N>
std::string_view WordOf(const std::array<Words<T>, N>& words, T value) {
  for (const auto& [word, meaning] : words)
    if (meaning == value) return word;
  return "?";
}

template <class T, size_t N>
Result<T> ReadWord(const Fields& fields, std::string_view key,
                   const std::array<Words<T>, N>& words) {
  TESSERA_ASSIGN_OR_RETURN(const std::string text, fields.Text(key));
  for (const auto& [word, meaning] : words)
    if (word == text) return meaning;
  return Fail(Unimplemented(fmt::format("\"{}.{}\" is \"{:.60}\", which this program does not know",
                                        fields.path(), key, text)));
}

// Real numbers are decimal strings: exact whatever the JSON reader does with number literals.
std::string RealText(double value) {
  return fmt::format("{}", value);
}

Result<double> ParseReal(const std::string& text, std::string_view path) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool finite = value - value == 0;
  if (error != std::errc() || end != text.data() + text.size() || !finite)
    return Fail(InvalidArgument(
        fmt::format("\"{}\" is \"{:.40}\", expected a decimal number in a string", path, text)));
  return value;
}

Result<double> ReadReal(const Fields& fields, std::string_view key) {
  TESSERA_ASSIGN_OR_RETURN(const std::string text, fields.Text(key));
  return ParseReal(text, fmt::format("{}.{}", fields.path(), key));
}

Result<int64_t> ReadIndex(const Fields& fields, std::string_view key) {
  return fields.Int(key, 0, INT32_MAX);
}

Result<std::optional<int64_t>> ReadOptionalIndex(const Fields& fields, std::string_view key) {
  if (!fields.Has(key)) return std::nullopt;
  TESSERA_ASSIGN_OR_RETURN(const int64_t index, ReadIndex(fields, key));
  return index;
}

void PutOptional(Object* object, std::string_view key, const std::optional<int64_t>& index) {
  if (index) object->emplace(key, *index);
}

// ---- Dims, Rope, Weight, Buffer

Object ToJson(const Dims& dims) {
  return {{"hidden", dims.hidden},           {"vocab_size", dims.vocab_size},
          {"layers", dims.layers},           {"heads", dims.heads},
          {"kv_heads", dims.kv_heads},       {"head_dim", dims.head_dim},
          {"max_seq_len", dims.max_seq_len}, {"page_tokens", dims.page_tokens}};
}

Result<Dims> ReadDims(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"hidden", "vocab_size", "layers", "heads", "kv_heads",
                                            "head_dim", "max_seq_len", "page_tokens"}));
  Dims dims;
  TESSERA_ASSIGN_OR_RETURN(dims.hidden, fields.Int("hidden", 1, kMaxDimension));
  TESSERA_ASSIGN_OR_RETURN(dims.vocab_size, fields.Int("vocab_size", 1, kMaxDimension));
  TESSERA_ASSIGN_OR_RETURN(dims.layers, fields.Int("layers", 1, kMaxLayers));
  TESSERA_ASSIGN_OR_RETURN(dims.heads, fields.Int("heads", 1, kMaxHeads));
  TESSERA_ASSIGN_OR_RETURN(dims.kv_heads, fields.Int("kv_heads", 1, kMaxHeads));
  TESSERA_ASSIGN_OR_RETURN(dims.head_dim, fields.Int("head_dim", 1, kMaxHeadDim));
  TESSERA_ASSIGN_OR_RETURN(dims.max_seq_len, fields.Int("max_seq_len", 1, kMaxContext));
  TESSERA_ASSIGN_OR_RETURN(dims.page_tokens, fields.Int("page_tokens", 1, kMaxPageTokens));
  return dims;
}

Object ToJson(const Rope& rope) {
  Array frequencies;
  for (const double frequency : rope.inverse_frequency)
    frequencies.emplace_back(RealText(frequency));
  return {{"rotary_dim", rope.rotary_dim},
          {"attention_factor", RealText(rope.attention_factor)},
          {"inverse_frequency", std::move(frequencies)}};
}

Result<Rope> ReadRope(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(
      fields.OnlyKnown({"rotary_dim", "attention_factor", "inverse_frequency"}));
  Rope rope;
  TESSERA_ASSIGN_OR_RETURN(rope.rotary_dim, fields.Int("rotary_dim", 2, kMaxHeadDim));
  TESSERA_ASSIGN_OR_RETURN(rope.attention_factor, ReadReal(fields, "attention_factor"));
  TESSERA_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                           fields.Texts("inverse_frequency", kMaxHeadDim));
  for (size_t i = 0; i < texts.size(); ++i) {
    TESSERA_ASSIGN_OR_RETURN(
        const double frequency,
        ParseReal(texts[i], fmt::format("{}.inverse_frequency[{}]", fields.path(), i)));
    rope.inverse_frequency.push_back(frequency);
  }
  return rope;
}

Object ToJson(const Weight& weight) {
  Array parts;
  for (const WeightPart& part : weight.parts)
    parts.push_back(
        Object{{"source", part.source}, {"row_begin", part.row_begin}, {"rows", part.rows}});
  Object object = {{"entry", weight.entry},
                   {"layout", WordOf(kLayouts, weight.layout)},
                   {"dtype", tensor::Name(weight.dtype)},
                   {"n", weight.n},
                   {"k", weight.k},
                   {"segments", weight.segments},
                   {"bytes", weight.bytes},
                   {"parts", std::move(parts)}};
  if (!weight.note.empty()) object.emplace("note", weight.note);
  return object;
}

Result<WeightPart> ReadPart(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"source", "row_begin", "rows"}));
  WeightPart part;
  TESSERA_ASSIGN_OR_RETURN(part.source, fields.Text("source"));
  TESSERA_ASSIGN_OR_RETURN(part.row_begin, fields.Int("row_begin", 0, kMaxDimension));
  TESSERA_ASSIGN_OR_RETURN(part.rows, fields.Int("rows", 0, kMaxDimension));
  return part;
}

Result<Weight> ReadWeight(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown(
      {"entry", "layout", "dtype", "n", "k", "segments", "bytes", "parts", "note"}));
  Weight weight;
  TESSERA_ASSIGN_OR_RETURN(weight.entry, fields.Text("entry"));
  TESSERA_ASSIGN_OR_RETURN(weight.layout, ReadWord(fields, "layout", kLayouts));
  TESSERA_ASSIGN_OR_RETURN(const std::string dtype, fields.Text("dtype"));
  const std::optional<tensor::DType> found = tensor::FindByName(dtype);
  if (!found)
    return Fail(Unimplemented(fmt::format(
        "\"{}.dtype\" is \"{:.40}\", which this program does not know", fields.path(), dtype)));
  weight.dtype = *found;
  TESSERA_ASSIGN_OR_RETURN(weight.n, fields.Int("n", 1, kMaxDimension));
  TESSERA_ASSIGN_OR_RETURN(weight.k, fields.Int("k", 1, kMaxDimension));
  TESSERA_ASSIGN_OR_RETURN(weight.segments,
                           fields.Int("segments", 1, static_cast<int64_t>(kMaxSegments)));
  TESSERA_ASSIGN_OR_RETURN(weight.bytes, fields.Int("bytes", 1, kMaxBytes));
  TESSERA_ASSIGN_OR_RETURN(const std::vector<Fields> parts,
                           fields.Objects("parts", kMaxWeightParts));
  for (const Fields& part : parts) {
    TESSERA_ASSIGN_OR_RETURN(WeightPart read, ReadPart(part));
    weight.parts.push_back(std::move(read));
  }
  TESSERA_ASSIGN_OR_RETURN(weight.note, fields.TextOr("note", ""));
  return weight;
}

Object ToJson(const Buffer& buffer) {
  return {
      {"name", buffer.name}, {"kind", WordOf(kKinds, buffer.kind)}, {"columns", buffer.columns}};
}

Result<Buffer> ReadBuffer(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"name", "kind", "columns"}));
  Buffer buffer;
  TESSERA_ASSIGN_OR_RETURN(buffer.name, fields.Text("name"));
  TESSERA_ASSIGN_OR_RETURN(buffer.kind, ReadWord(fields, "kind", kKinds));
  TESSERA_ASSIGN_OR_RETURN(buffer.columns, fields.Int("columns", 1, kMaxDimension));
  return buffer;
}

// ---- Steps

Object ToJson(const Norm& norm) {
  return {{"weight", norm.weight}, {"eps", RealText(norm.eps)}};
}

Result<Norm> ReadNorm(const Fields& fields, std::string_view key) {
  TESSERA_ASSIGN_OR_RETURN(const Fields object, fields.Object(key));
  TESSERA_RETURN_IF_ERROR(object.OnlyKnown({"weight", "eps"}));
  Norm norm;
  TESSERA_ASSIGN_OR_RETURN(norm.weight, ReadIndex(object, "weight"));
  TESSERA_ASSIGN_OR_RETURN(norm.eps, ReadReal(object, "eps"));
  return norm;
}

Result<std::optional<Norm>> ReadOptionalNorm(const Fields& fields, std::string_view key) {
  if (!fields.Has(key)) return std::nullopt;
  TESSERA_ASSIGN_OR_RETURN(const Norm norm, ReadNorm(fields, key));
  return norm;
}

Object ToJson(const HeadRows& rows) {
  return {{"weight", rows.weight}, {"row", rows.row}, {"stride", rows.stride}};
}

Result<HeadRows> ReadHeadRows(const Fields& fields, std::string_view key) {
  TESSERA_ASSIGN_OR_RETURN(const Fields object, fields.Object(key));
  TESSERA_RETURN_IF_ERROR(object.OnlyKnown({"weight", "row", "stride"}));
  HeadRows rows;
  TESSERA_ASSIGN_OR_RETURN(rows.weight, ReadIndex(object, "weight"));
  TESSERA_ASSIGN_OR_RETURN(rows.row, object.Int("row", 0, kMaxDimension));
  TESSERA_ASSIGN_OR_RETURN(rows.stride, object.Int("stride", 0, kMaxDimension));
  return rows;
}

Object ToJson(const EmbedStep& step) {
  return {{"table", step.table}, {"out", step.out}, {"scale", RealText(step.scale)}};
}

Result<EmbedStep> ReadEmbed(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"table", "out", "scale"}));
  EmbedStep step;
  TESSERA_ASSIGN_OR_RETURN(step.table, ReadIndex(fields, "table"));
  TESSERA_ASSIGN_OR_RETURN(step.out, ReadIndex(fields, "out"));
  TESSERA_ASSIGN_OR_RETURN(step.scale, ReadReal(fields, "scale"));
  return step;
}

Object ToJson(const QkvStep& step) {
  Object object = {{"layer", step.layer},       {"in", step.in},       {"out", step.out},
                   {"norm", ToJson(step.norm)}, {"q", ToJson(step.q)}, {"k", ToJson(step.k)},
                   {"v", ToJson(step.v)}};
  PutOptional(&object, "bias", step.bias);
  if (step.q_norm) object.emplace("q_norm", ToJson(*step.q_norm));
  if (step.k_norm) object.emplace("k_norm", ToJson(*step.k_norm));
  PutOptional(&object, "rope", step.rope);
  return object;
}

Result<QkvStep> ReadQkv(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown(
      {"layer", "in", "out", "norm", "q", "k", "v", "bias", "q_norm", "k_norm", "rope"}));
  QkvStep step;
  TESSERA_ASSIGN_OR_RETURN(step.layer, ReadIndex(fields, "layer"));
  TESSERA_ASSIGN_OR_RETURN(step.in, ReadIndex(fields, "in"));
  TESSERA_ASSIGN_OR_RETURN(step.out, ReadIndex(fields, "out"));
  TESSERA_ASSIGN_OR_RETURN(step.norm, ReadNorm(fields, "norm"));
  TESSERA_ASSIGN_OR_RETURN(step.q, ReadHeadRows(fields, "q"));
  TESSERA_ASSIGN_OR_RETURN(step.k, ReadHeadRows(fields, "k"));
  TESSERA_ASSIGN_OR_RETURN(step.v, ReadHeadRows(fields, "v"));
  TESSERA_ASSIGN_OR_RETURN(step.bias, ReadOptionalIndex(fields, "bias"));
  TESSERA_ASSIGN_OR_RETURN(step.q_norm, ReadOptionalNorm(fields, "q_norm"));
  TESSERA_ASSIGN_OR_RETURN(step.k_norm, ReadOptionalNorm(fields, "k_norm"));
  TESSERA_ASSIGN_OR_RETURN(step.rope, ReadOptionalIndex(fields, "rope"));
  return step;
}

Object ToJson(const AttentionStep& step) {
  return {{"layer", step.layer},   {"in", step.in},
          {"out", step.out},       {"scale", RealText(step.scale)},
          {"window", step.window}, {"softcap", RealText(step.softcap)}};
}

Result<AttentionStep> ReadAttention(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"layer", "in", "out", "scale", "window", "softcap"}));
  AttentionStep step;
  TESSERA_ASSIGN_OR_RETURN(step.layer, ReadIndex(fields, "layer"));
  TESSERA_ASSIGN_OR_RETURN(step.in, ReadIndex(fields, "in"));
  TESSERA_ASSIGN_OR_RETURN(step.out, ReadIndex(fields, "out"));
  TESSERA_ASSIGN_OR_RETURN(step.scale, ReadReal(fields, "scale"));
  TESSERA_ASSIGN_OR_RETURN(step.window, fields.Int("window", 0, kMaxContext));
  TESSERA_ASSIGN_OR_RETURN(step.softcap, ReadReal(fields, "softcap"));
  return step;
}

Object ToJson(const ProjectStep& step) {
  Object object = {{"in", step.in}, {"residual", step.residual}, {"weight", step.weight}};
  PutOptional(&object, "bias", step.bias);
  return object;
}

Result<ProjectStep> ReadProject(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"in", "residual", "weight", "bias"}));
  ProjectStep step;
  TESSERA_ASSIGN_OR_RETURN(step.in, ReadIndex(fields, "in"));
  TESSERA_ASSIGN_OR_RETURN(step.residual, ReadIndex(fields, "residual"));
  TESSERA_ASSIGN_OR_RETURN(step.weight, ReadIndex(fields, "weight"));
  TESSERA_ASSIGN_OR_RETURN(step.bias, ReadOptionalIndex(fields, "bias"));
  return step;
}

Object ToJson(const GatedStep& step) {
  Object object = {{"in", step.in},
                   {"out", step.out},
                   {"norm", ToJson(step.norm)},
                   {"activation", WordOf(kActivations, step.activation)},
                   {"gate", step.gate}};
  PutOptional(&object, "up", step.up);
  return object;
}

Result<GatedStep> ReadGated(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"in", "out", "norm", "activation", "gate", "up"}));
  GatedStep step;
  TESSERA_ASSIGN_OR_RETURN(step.in, ReadIndex(fields, "in"));
  TESSERA_ASSIGN_OR_RETURN(step.out, ReadIndex(fields, "out"));
  TESSERA_ASSIGN_OR_RETURN(step.norm, ReadNorm(fields, "norm"));
  TESSERA_ASSIGN_OR_RETURN(step.activation, ReadWord(fields, "activation", kActivations));
  TESSERA_ASSIGN_OR_RETURN(step.gate, ReadIndex(fields, "gate"));
  TESSERA_ASSIGN_OR_RETURN(step.up, ReadOptionalIndex(fields, "up"));
  return step;
}

Object ToJson(const HeadStep& step) {
  return {{"in", step.in}, {"norm", ToJson(step.norm)}, {"weight", step.weight}};
}

Result<HeadStep> ReadHead(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"in", "norm", "weight"}));
  HeadStep step;
  TESSERA_ASSIGN_OR_RETURN(step.in, ReadIndex(fields, "in"));
  TESSERA_ASSIGN_OR_RETURN(step.norm, ReadNorm(fields, "norm"));
  TESSERA_ASSIGN_OR_RETURN(step.weight, ReadIndex(fields, "weight"));
  return step;
}

Object ToJson(const Step& step) {
  Object object = {{"step", StepName(step)}, {"label", step.label}};
  object.emplace("args", std::visit([](const auto& op) { return ToJson(op); }, step.op));
  if (!step.kernel_one.empty()) object.emplace("kernel_one", step.kernel_one);
  if (!step.kernel_many.empty()) object.emplace("kernel_many", step.kernel_many);
  return object;
}

template <class T>
Status Store(Result<T> op, Step* step) {
  if (!op.has_value()) return op.error();
  step->op = *std::move(op);
  return {};
}

Status ReadOp(std::string_view name, const Fields& args, Step* step) {
  if (name == kStepNames[0]) return Store(ReadEmbed(args), step);
  if (name == kStepNames[1]) return Store(ReadQkv(args), step);
  if (name == kStepNames[2]) return Store(ReadAttention(args), step);
  if (name == kStepNames[3]) return Store(ReadProject(args), step);
  if (name == kStepNames[4]) return Store(ReadGated(args), step);
  if (name == kStepNames[5]) return Store(ReadHead(args), step);
  return Unimplemented(fmt::format("step \"{:.60}\" is not known to this program", name));
}

Result<Step> ReadStep(const Fields& fields) {
  TESSERA_RETURN_IF_ERROR(fields.OnlyKnown({"step", "label", "args", "kernel_one", "kernel_many"}));
  Step step;
  TESSERA_ASSIGN_OR_RETURN(const std::string name, fields.Text("step"));
  TESSERA_ASSIGN_OR_RETURN(step.label, fields.Text("label"));
  TESSERA_ASSIGN_OR_RETURN(const Fields args, fields.Object("args"));
  TESSERA_RETURN_IF_ERROR(ReadOp(name, args, &step).WithContext(fields.path()));
  TESSERA_ASSIGN_OR_RETURN(step.kernel_one, fields.TextOr("kernel_one", ""));
  TESSERA_ASSIGN_OR_RETURN(step.kernel_many, fields.TextOr("kernel_many", ""));
  return step;
}

// ---- The document

template <class T>
Array ListToJson(const std::vector<T>& items) {
  Array array;
  for (const T& item : items) array.push_back(ToJson(item));
  return array;
}

template <class T>
Status ReadList(const Fields& fields, std::string_view key, uint64_t max,
                Result<T> (*read)(const Fields&), std::vector<T>* out) {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<Fields> objects, fields.Objects(key, max));
  out->reserve(objects.size());
  for (const Fields& object : objects) {
    TESSERA_ASSIGN_OR_RETURN(T item, read(object));
    out->push_back(std::move(item));
  }
  return {};
}

Result<Program> ReadDocument(const Value& document) {
  TESSERA_ASSIGN_OR_RETURN(const Fields fields, Fields::Of(document, ""));
  Program program;
  TESSERA_ASSIGN_OR_RETURN(program.version, fields.Int("version", 0, INT32_MAX));
  if (program.version != kProgramVersion)
    return Fail(Unimplemented(fmt::format("program version {}, this program reads {}",
                                          program.version, kProgramVersion)));
  TESSERA_RETURN_IF_ERROR(
      fields.OnlyKnown({"version", "target", "dims", "ropes", "weights", "buffers", "steps"}));
  TESSERA_ASSIGN_OR_RETURN(program.target, fields.Text("target"));
  TESSERA_ASSIGN_OR_RETURN(const Fields dims, fields.Object("dims"));
  TESSERA_ASSIGN_OR_RETURN(program.dims, ReadDims(dims));
  TESSERA_RETURN_IF_ERROR(ReadList(fields, "ropes", kMaxRopes, ReadRope, &program.ropes));
  TESSERA_RETURN_IF_ERROR(ReadList(fields, "weights", kMaxWeights, ReadWeight, &program.weights));
  TESSERA_RETURN_IF_ERROR(ReadList(fields, "buffers", kMaxBuffers, ReadBuffer, &program.buffers));
  TESSERA_RETURN_IF_ERROR(ReadList(fields, "steps", kMaxSteps, ReadStep, &program.steps));
  return program;
}

}  // namespace

std::string_view StepName(const Step& step) {
  return kStepNames[step.op.index()];
}

std::string_view LayoutName(WeightLayout layout) {
  return WordOf(kLayouts, layout);
}

std::string WriteProgram(const Program& program) {
  return json::SerializePretty(Object{{"version", program.version},
                                      {"target", program.target},
                                      {"dims", ToJson(program.dims)},
                                      {"ropes", ListToJson(program.ropes)},
                                      {"weights", ListToJson(program.weights)},
                                      {"buffers", ListToJson(program.buffers)},
                                      {"steps", ListToJson(program.steps)}});
}

Result<Program> ReadProgram(std::string_view text, std::string_view where) {
  json::Limits limits;
  limits.max_bytes = kMaxDocumentBytes;
  TESSERA_ASSIGN_OR_RETURN(const Value document, json::Parse(text, limits, where));
  Result<Program> program = ReadDocument(document);
  if (!program.has_value()) return Fail(program.error().WithContext(std::string(where)));
  return program;
}

}  // namespace tessera::bundle
