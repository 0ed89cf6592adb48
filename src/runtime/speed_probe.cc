// SPDX-License-Identifier: Apache-2.0
#include "runtime/speed_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "bundle/bundle.h"
#include "bundle/program_verify.h"
#include "bundle/shard.h"
#include "bundle/step_weights.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/writer.h"
#include "formats/open.h"
#include "runtime/machine_probe.h"
#include "runtime/nameless_file.h"
#include "runtime/step_work.h"

namespace tessera::runtime {
namespace {

namespace fs = std::filesystem;
using bundle::Program;
using bundle::WeightIndex;

/// Longer prompts are reckoned from this one.
constexpr int64_t kPromptTokens = 256;
constexpr int kDecodeRounds = 15;
constexpr int kPrefillRounds = 3;
/// Of the machine's bound, where nothing can be run.
constexpr double kDecodeShare = 0.8;
constexpr double kPrefillShare = 0.6;

int64_t LayerOf(const bundle::Step& step, int64_t last) {
  if (const auto* qkv = std::get_if<bundle::QkvStep>(&step.op)) return qkv->layer;
  return last;
}

/// The program's first layers with its embedding and head.
Program FirstLayers(const Program& program, int64_t layers) {
  Program cut = program;
  cut.dims.layers = layers;
  cut.steps.clear();
  int64_t layer = -1;
  for (const bundle::Step& step : program.steps) {
    layer = LayerOf(step, layer);
    if (layer < layers || std::holds_alternative<bundle::HeadStep>(step.op))
      cut.steps.push_back(step);
  }
  // Weights that are left, numbered anew.
  std::vector<WeightIndex> number(program.weights.size(), -1);
  cut.weights.clear();
  for (bundle::Step& step : cut.steps) {
    bundle::ForEachWeight(&step, [&](WeightIndex* index) {
      WeightIndex& to = number[static_cast<size_t>(*index)];
      if (to < 0) {
        to = std::ssize(cut.weights);
        cut.weights.push_back(program.weights[static_cast<size_t>(*index)]);
      }
      *index = to;
    });
  }
  return cut;
}

/// All weights but a table of which only the rows of the tokens are read.
int64_t BytesRead(const Program& program) {
  int64_t bytes =
      std::accumulate(program.weights.begin(), program.weights.end(), int64_t{0},
                      [](int64_t sum, const bundle::Weight& w) { return sum + w.bytes; });
  for (const WeightIndex table : bundle::LookupTables(program))
    bytes -= program.weights[static_cast<size_t>(table)].bytes;
  return bytes;
}

/// Layers whose packed weights fit the memory that a probe may take; 0 when not even one does.
int64_t LayersThatFit(const Program& program, uint64_t memory_available) {
  const auto limit = static_cast<int64_t>(
      std::min<uint64_t>(memory_available / 4, static_cast<uint64_t>(kProbeBytes)));
  const int64_t all = program.dims.layers;
  if (BytesRead(program) <= limit) return all;
  int64_t fits = 0;
  for (int64_t layers = 1; layers < all; layers = layers + std::max<int64_t>(1, layers / 4)) {
    if (BytesRead(FirstLayers(program, layers)) > limit) break;
    fits = layers;
  }
  return fits;
}

/// An archive of zeros for the program: a file with a hole for data, whose pages are memory once
/// they are read.
Result<formats::ParameterIndex> MakeZeros(const Program& program, const fs::path& path) {
  namespace irpa = formats::irpa;
  std::vector<irpa::WriteEntry> entries;
  for (const bundle::Weight& weight : program.weights) {
    TESSERA_ASSIGN_OR_RETURN(
        std::string metadata,
        irpa::MakeEntryMetadata(irpa::MetadataStyle::kPytorch,
                                {tensor::DType::kU8, tensor::Shape{weight.bytes}}));
    entries.push_back({weight.entry, std::move(metadata), static_cast<uint64_t>(weight.bytes), {}});
  }
  TESSERA_ASSIGN_OR_RETURN(const irpa::ArchivePlan plan,
                           irpa::PlanArchive(entries, {.data_alignment = 4096}));
  TESSERA_ASSIGN_OR_RETURN(const auto file, FileWriter::Create(path));
  TESSERA_RETURN_IF_ERROR(file->Append(AsBytes(plan.head)));
  TESSERA_RETURN_IF_ERROR(file->Resize(plan.file_bytes));
  return formats::Open(path);
}

/// The median of the rounds, not the best: neighbours that slow some of them slow what is
/// predicted.
template <class Run>
Result<double> UsualSeconds(int rounds, const Run& run) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const TimePoint begin = Clock::Real().Now();
    TESSERA_RETURN_IF_ERROR(run());
    seconds.push_back(Seconds(Clock::Real().Now() - begin));
  }
  const auto middle = seconds.begin() + rounds / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

Result<ProgramSpeed> RunOnZeros(const Program& program, int64_t prompt,
                                const LoadOptions& options) {
  const NamelessFile file;
  bundle::Bundle bundle;
  bundle.manifest.target = "cpu";
  bundle.program = program;
  bundle.ranks.push_back(bundle::WholeProgram(program));
  TESSERA_ASSIGN_OR_RETURN(bundle.archive, MakeZeros(program, file.path()));
  file.ReadThrough();
  LoadOptions load = options;
  load.kv = {};
  load.kv.tokens = prompt + 1;
  load.verify_parameters = false;
  TESSERA_ASSIGN_OR_RETURN(const auto session, LoadSession(std::move(bundle), load));
  std::vector<int32_t> tokens(static_cast<size_t>(prompt) + 1);
  Random random(/*seed=*/1);
  for (int32_t& token : tokens)
    token = static_cast<int32_t>(random.Below(static_cast<uint64_t>(program.dims.vocab_size)));
  std::vector<PageId> pages(static_cast<size_t>(prompt / program.dims.page_tokens) + 1);
  std::iota(pages.begin(), pages.end(), 0);
  const std::span<const int32_t> all(tokens);
  const auto step = [&](int64_t start, int64_t rows) -> Status {
    const Chunk chunk{.tokens = all.subspan(static_cast<size_t>(start), static_cast<size_t>(rows)),
                      .start = start,
                      .pages = pages};
    return StatusOf(session->Step({&chunk, 1}));
  };
  TESSERA_RETURN_IF_ERROR(step(0, prompt));  // The pages of the file become memory.
  ProgramSpeed speed;
  TESSERA_ASSIGN_OR_RETURN(speed.prefill_seconds,
                           UsualSeconds(kPrefillRounds, [&] { return step(0, prompt); }));
  TESSERA_ASSIGN_OR_RETURN(speed.decode_seconds,
                           UsualSeconds(kDecodeRounds, [&] { return step(prompt, 1); }));
  speed.layers_run = program.dims.layers;
  return speed;
}

struct Work {
  StepWork prefill, decode;
};

Work WorkOf(const Program& program, int64_t prompt, kernels::KvType type) {
  const ProgramWork work(program, type);
  const ChunkShape whole{0, prompt, 1}, next{prompt, 1, 1};
  return {work.Of({&whole, 1}), work.Of({&next, 1})};
}

}  // namespace

Result<ProgramSpeed> PredictSpeed(const Program& program, int64_t prompt,
                                  const LoadOptions& options) {
  const Topology topology = ReadTopology();
  const int threads = options.threads > 0 ? options.threads : topology.DefaultThreads();
  TESSERA_ASSIGN_OR_RETURN(const MachineRates rates, MeasureMachine(topology, threads));
  const Work whole = WorkOf(program, prompt, options.kv_type);
  const double prefill_bound = BoundSeconds(whole.prefill, rates);
  const double decode_bound = BoundSeconds(whole.decode, rates);
  const int64_t layers = LayersThatFit(program, topology.memory_available);
  if (layers == 0)
    return ProgramSpeed{prefill_bound / kPrefillShare, decode_bound / kDecodeShare, 0};
  const Program cut = layers == program.dims.layers ? program : FirstLayers(program, layers);
  TESSERA_RETURN_IF_ERROR(
      bundle::VerifyProgram(cut).WithContext("a program cut to its first layers"));
  const int64_t run_prompt =
      std::min({prompt, kPromptTokens, options.max_rows, program.dims.max_seq_len - 1});
  TESSERA_ASSIGN_OR_RETURN(ProgramSpeed speed, RunOnZeros(cut, run_prompt, options));
  const Work run = WorkOf(cut, run_prompt, options.kv_type);
  speed.prefill_seconds *= prefill_bound / BoundSeconds(run.prefill, rates);
  speed.decode_seconds *= decode_bound / BoundSeconds(run.decode, rates);
  return speed;
}

}  // namespace tessera::runtime
