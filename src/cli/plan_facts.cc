// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cli/model_argument.h"
#include "cli/terminal.h"

#include "base/topology.h"
#include "bundle/buffer_bytes.h"
#include "bundle/bundle.h"
#include "bundle/step_weights.h"
#include "compiler/dry_run.h"
#include "compiler/quantise_choice.h"

namespace tessera::cli {
namespace {

// Measured (docs/performance.md, "What plan predicts"): code of libraries and the heap of a server
// that holds no request; and, of what is mapped of the program's own file, the share that serving
// has in memory.
constexpr uint64_t kProcessBytes = 17'500'000;
constexpr double kProgramShare = 0.57;
/// A tokenizer: its table, and beside that so much of it in the heap.
constexpr double kTokenizerHeapShare = 0.27;
/// Formats that --quantize makes, best first.
constexpr std::string_view kQuantisers[] = {"none", "q8_0", "q6_k", "q4_k", "q4_0"};
constexpr int64_t kMaxRanks = 8;

/// Code and data of this program: without symbols, which nobody maps.
uint64_t ProgramBytes() {
  uint64_t bytes = 0;
  const auto add = [](dl_phdr_info* info, size_t, void* sum) {
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_LOAD)
        *static_cast<uint64_t*>(sum) += info->dlpi_phdr[i].p_filesz;
    return 1;  // The first is the program; its libraries follow.
  };
  dl_iterate_phdr(add, &bytes);
  return bytes;
}

/// Of a tokenizer whose table is not made yet, by its vocabulary: those of larger ones have longer
/// tokens and more merges.
uint64_t TokenizerBytes(int64_t vocab_size) {
  constexpr int64_t kSmall = 49152;
  return static_cast<uint64_t>(50 * vocab_size + 52 * std::max<int64_t>(0, vocab_size - kSmall));
}

uint64_t WeightBytes(const bundle::Program& program) {
  uint64_t bytes = 0;
  for (const bundle::Weight& weight : program.weights) bytes += static_cast<uint64_t>(weight.bytes);
  return bytes;
}

void CountTable(const bundle::Program& program, PlanFacts* facts) {
  facts->table_bytes = 0;
  for (const bundle::WeightIndex index : bundle::LookupTables(program)) {
    const bundle::Weight& table = program.weights[static_cast<size_t>(index)];
    facts->table_bytes += static_cast<uint64_t>(table.bytes);
  }
}

void CountWeights(PlanFacts* facts) {
  facts->weight_bytes = WeightBytes(facts->program);
  CountTable(facts->program, facts);
  std::map<tensor::DType, int64_t> bytes;
  facts->parameters = 0;
  for (const bundle::Weight& weight : facts->program.weights) {
    facts->parameters += weight.n * weight.k;
    if (weight.n > 1) bytes[weight.dtype] += weight.bytes;
  }
  const auto most = std::ranges::max_element(
      bytes, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != bytes.end()) facts->format = most->first;
}

/// Of the largest file of parameters.
std::string LargestFile(const formats::ParameterIndex& index) {
  const auto most = std::ranges::max_element(
      index.files(), {}, [](const formats::SourceFile& file) { return file.bytes.size(); });
  return most == index.files().end() ? "" : most->path.string();
}

uint64_t FileBytes(const formats::ParameterIndex& index) {
  uint64_t bytes = 0;
  for (const formats::SourceFile& file : index.files()) bytes += file.bytes.size();
  return bytes;
}

Result<PlanFacts> ReadRepository(const std::string& path, const compiler::CompileOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const model::ModelSource source, model::OpenModel(path));
  TESSERA_ASSIGN_OR_RETURN(PlanFacts facts, FactsOfSource(source, options));
  AddFormats(source, options, &facts);
  return facts;
}

Result<PlanFacts> ReadBundle(const std::string& path, int64_t context) {
  TESSERA_ASSIGN_OR_RETURN(bundle::Bundle bundle,
                           bundle::OpenBundle(path, bundle::Check::kSizesAndSmallFiles));
  PlanFacts facts;
  facts.is_bundle = true;
  facts.family = bundle.manifest.model;
  facts.program = std::move(bundle.program);
  facts.largest_file = LargestFile(bundle.archive);
  TESSERA_ASSIGN_OR_RETURN(facts.context,
                           compiler::ContextLength(context, facts.program.dims.max_seq_len));
  CountWeights(&facts);
  for (const bundle::FileRecord& file : bundle.manifest.files) {
    facts.bundle_bytes += file.bytes;
    if (file.name == bundle::kTokenizerTableFile)
      facts.tokenizer_bytes =
          static_cast<uint64_t>(static_cast<double>(file.bytes) * (1 + kTokenizerHeapShare));
  }
  return facts;
}

/// Weights that every rank has whole.
std::set<bundle::WeightIndex> ReplicatedWeights(const bundle::Program& program) {
  std::set<bundle::WeightIndex> whole;
  std::optional<bundle::WeightIndex> head;
  for (const bundle::Step& step : program.steps) {
    if (const auto* embed = std::get_if<bundle::EmbedStep>(&step.op)) whole.insert(embed->table);
    if (const auto* last = std::get_if<bundle::HeadStep>(&step.op)) head = last->weight;
  }
  for (size_t i = 0; i < program.weights.size(); ++i)
    if (program.weights[i].n == 1) whole.insert(static_cast<bundle::WeightIndex>(i));
  return whole;
}

uint64_t ReplicatedBytes(const bundle::Program& program) {
  uint64_t bytes = 0;
  for (const bundle::WeightIndex index : ReplicatedWeights(program))
    bytes += static_cast<uint64_t>(program.weights[static_cast<size_t>(index)].bytes);
  return bytes;
}

}  // namespace

Result<PlanFacts> FactsOfSource(const model::ModelSource& source,
                                compiler::CompileOptions options) {
  if (options.quantize == compiler::kAutoQuantize) {
    TESSERA_ASSIGN_OR_RETURN(
        compiler::QuantiseChoice choice,
        compiler::ChooseQuantisation(source, options, ReadTopology().memory_bytes));
    options.quantize = std::move(choice.quantize);
  }
  TESSERA_ASSIGN_OR_RETURN(compiler::DryRun made, compiler::MakeDryRun(source, options));
  PlanFacts facts;
  facts.family = source.config.family;
  facts.program = std::move(made.program);
  facts.context = facts.program.dims.max_seq_len;
  CountWeights(&facts);
  facts.source_bytes = FileBytes(source.index);
  facts.largest_file = LargestFile(source.index);
  facts.original_bytes = source.index.total_bytes();
  facts.bundle_bytes = made.needs.disk;
  facts.needs = made.needs;
  facts.is_exact = made.is_exact;
  facts.tokenizer_bytes = TokenizerBytes(facts.program.dims.vocab_size);
  if (const auto* json = std::get_if<model::JsonTokenizer>(&source.tokenizer))
    facts.tokenizer_json = json->json.size();
  if (const auto* gguf = std::get_if<model::GgufTokenizer>(&source.tokenizer))
    for (const std::span<const std::string> strings : {gguf->tokens, gguf->merges})
      for (const std::string& text : strings)
        facts.vocabulary_bytes += sizeof(std::string) + text.size();
  facts.warnings = source.warnings;
  return facts;
}

void AddFormats(const model::ModelSource& source, const compiler::CompileOptions& wanted,
                PlanFacts* facts) {
  for (const std::string_view name : kQuantisers) {
    compiler::CompileOptions options = wanted;
    options.quantize = name;
    const auto choice = compiler::MakeDryRun(source, options);
    if (!choice.has_value()) continue;  // Not for this model; asking for it says why.
    const uint64_t bytes = WeightBytes(choice->program);
    // Those that are smaller than the ones before.
    if (facts->formats.empty() || bytes < facts->formats.back().weight_bytes)
      facts->formats.push_back({std::string(name), bytes, ReplicatedBytes(choice->program)});
  }
}

Result<PlanFacts> ReadPlanFacts(const std::string& model, const HubOptions& hub,
                                const compiler::CompileOptions& compile) {
  TESSERA_ASSIGN_OR_RETURN(const ResolvedModel resolved,
                           ResolveModel(model, hub, /*cache_dir=*/"", ModelNeed::kHeaders));
  TESSERA_ASSIGN_OR_RETURN(PlanFacts facts, resolved.kind == ModelKind::kBundle
                                                ? ReadBundle(resolved.path, compile.max_seq_len)
                                                : ReadRepository(resolved.path, compile));
  facts.model = resolved.repository.empty() ? model : resolved.repository;
  facts.revision = resolved.revision;
  return facts;
}

MemoryForecast ForecastMemory(const PlanFacts& facts, kernels::KvType kv_type) {
  const bundle::Dims& d = facts.program.dims;
  const kernels::KvLayout page{d.layers, d.kv_heads, d.head_dim, d.page_tokens, kv_type};
  MemoryForecast memory;
  memory.weights = facts.weight_bytes;
  memory.table = facts.table_bytes;
  memory.kv_per_token = static_cast<uint64_t>(page.PageBytes() / d.page_tokens);
  constexpr int64_t kRows = 512;
  for (const bundle::Buffer& buffer : facts.program.buffers)
    memory.scratch +=
        static_cast<uint64_t>(bundle::BufferBytes(buffer.kind, kRows, buffer.columns));
  memory.tokenizer = facts.tokenizer_bytes;
  memory.process =
      kProcessBytes + static_cast<uint64_t>(kProgramShare * static_cast<double>(ProgramBytes()));
  return memory;
}

uint64_t WeightsOfRank(uint64_t weight_bytes, uint64_t replicated_bytes, int64_t ranks) {
  const auto parts = static_cast<uint64_t>(ranks);
  return replicated_bytes + (weight_bytes - replicated_bytes + parts - 1) / parts;
}

std::vector<RankBytes> BytesOfRanks(const PlanFacts& facts, kernels::KvType kv_type) {
  const bundle::Dims& d = facts.program.dims;
  const uint64_t weights = WeightBytes(facts.program);
  const uint64_t replicated = ReplicatedBytes(facts.program);
  const uint64_t kv = ForecastMemory(facts, kv_type).kv_per_token;
  std::vector<RankBytes> ranks;
  for (int64_t n = 1; n <= std::min(kMaxRanks, d.kv_heads); ++n) {
    if (d.kv_heads % n == 0)
      ranks.push_back({n, WeightsOfRank(weights, replicated, n), kv / static_cast<uint64_t>(n)});
  }
  return ranks;
}

Status CheckFits(const PlanFacts& facts, const MemoryForecast& memory, kernels::KvType kv_type,
                 uint64_t positions, uint64_t available) {
  const uint64_t need = memory.WithKv(positions);
  if (available == 0 || need <= available) return {};  // 0: not known.
  std::vector<std::string> fixes;
  for (const FormatChoice& choice : facts.formats) {
    const uint64_t smaller = need - memory.weights + choice.weight_bytes;
    if (choice.weight_bytes >= memory.weights || smaller > available) continue;
    fixes.push_back(fmt::format("--quantize {} ({})", choice.quantize, HumanBytes(smaller)));
    break;
  }
  // More positions than one sequence has are what --kv-memory asked for.
  const bool is_kv_memory = positions > static_cast<uint64_t>(facts.context);
  if (const uint64_t fit = memory.PositionsIn(available); fit >= kShortestSequence)
    fixes.push_back(
        is_kv_memory
            ? fmt::format("--kv-memory {}Mi", (fit * memory.kv_per_token) >> 20)
            : fmt::format("--max-seq-len {}", fit / kShortestSequence * kShortestSequence));
  for (const RankBytes& rank : BytesOfRanks(facts, kv_type)) {
    const uint64_t each =
        memory.fixed() - memory.weights + rank.weights + rank.kv_per_token * positions;
    if (rank.ranks == 1 || each > available) continue;
    fixes.push_back(
        fmt::format("--tp {} on as many machines ({} each)", rank.ranks, HumanBytes(each)));
    break;
  }
  if (fixes.empty()) fixes.push_back("a machine with more memory");
  return ResourceExhausted(fmt::format(
      "{} needs {} of memory (weights {}, KV of {} positions {}, other {}), {} are available; what "
      "helps: {}",
      facts.model, HumanBytes(need), HumanBytes(memory.weights), positions,
      HumanBytes(memory.kv_per_token * positions), HumanBytes(memory.fixed() - memory.weights),
      HumanBytes(available), fmt::join(fixes, ", or ")));
}

}  // namespace tessera::cli
