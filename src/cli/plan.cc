// SPDX-License-Identifier: Apache-2.0
//
// tessera plan MODEL: what a model needs and how fast it will be here, from headers and a run of
// some layers on zeros; no weight is read. Formulas: docs/cli.md, section plan.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "cli/loaded_model.h"
#include "cli/model_argument.h"
#include "cli/plan_compile.h"
#include "cli/plan_facts.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/json.h"
#include "bundle/limits.h"
#include "compiler/quantise_choice.h"
#include "engine/limits.h"
#include "runtime/load_probe.h"
#include "runtime/speed_probe.h"

namespace tessera::cli {
namespace {

// What a start takes beside its weights: the process, the program, the tokenizer's table. Measured
// (docs/performance.md, "What plan predicts").
constexpr double kStartSeconds = 0.03;

struct Options {
  std::string model;
  HubOptions hub;
  compiler::CompileOptions compile;
  int64_t prompt = 512;
  int64_t sequences = 1;
  std::string kv_dtype = "f16";
  std::optional<uint64_t> device_memory;
  int threads = 0;
  std::string isa = "auto";
  bool no_certificate = false;
  bool no_probe = false;
  bool json = false;
};

struct Plan {
  PlanFacts facts;
  MemoryForecast memory;
  std::vector<RankBytes> ranks;
  std::optional<runtime::ProgramSpeed> speed;  // Nothing: not asked for.
  CompileForecast compiling;
  kernels::KvType kv_type = kernels::KvType::kF16;
  double mapping_rate = 0;  // Bytes a second from the page cache; 0: not measured,
  double disk_rate = 0;     // and from the disk.
  int threads = 1;
  uint64_t available = 0;
  uint64_t machine_memory = 0;
  int64_t sequences = 1;
  int64_t prompt = 0;
  uint64_t device_memory = 0;
  bool is_for_devices = false;  // Their memory was said.

  uint64_t positions() const { return static_cast<uint64_t>(facts.context * sequences); }
  uint64_t total() const { return memory.WithKv(positions()); }
  double LoadSeconds(double rate) const {
    return kStartSeconds + static_cast<double>(memory.weights) / rate;
  }
  bool fits() const { return total() <= available; }
  /// Of a server that has answered `tokens` of prompt and answer: it keeps some pages ahead.
  uint64_t Resident(int64_t tokens) const {
    const int64_t positions =
        std::min(tokens + engine::kBackedTokensAhead, std::max(facts.context * sequences, tokens));
    return memory.WithKv(static_cast<uint64_t>(positions)) - memory.table -
           (tokens > 0 ? 0 : memory.scratch);
  }
  /// Bytes that a rank needs with the planned context and sequences.
  uint64_t OfRank(const RankBytes& rank) const {
    return memory.fixed() - memory.weights + rank.weights + rank.kv_per_token * positions();
  }
};

Result<Plan> MakePlan(const Options& options) {
  Plan plan;
  TESSERA_ASSIGN_OR_RETURN(plan.facts, ReadPlanFacts(options.model, options.hub, options.compile));
  TESSERA_ASSIGN_OR_RETURN(const kernels::KvType kv_type, KvTypeOf(options.kv_dtype));
  plan.kv_type = kv_type;
  plan.memory = ForecastMemory(plan.facts, kv_type);
  plan.compiling = ForecastCompile(plan.facts, !options.no_certificate);
  plan.ranks = BytesOfRanks(plan.facts, kv_type);
  plan.sequences = options.sequences;
  plan.prompt = std::min(options.prompt, plan.facts.context - 1);
  const Topology topology = ReadTopology();
  plan.threads = options.threads > 0 ? options.threads : topology.DefaultThreads();
  plan.available = topology.memory_available;
  plan.machine_memory = topology.memory_bytes;
  plan.device_memory = options.device_memory.value_or(plan.available);
  plan.is_for_devices = options.device_memory.has_value();
  if (options.no_probe) return plan;
  TESSERA_ASSIGN_OR_RETURN(plan.mapping_rate, runtime::MeasureMapping(plan.threads));
  plan.disk_rate = runtime::MeasureDisk(plan.facts.largest_file);
  if (plan.prompt < 1) return plan;
  runtime::LoadOptions load;
  load.threads = plan.threads;
  load.kv_type = kv_type;
  TESSERA_ASSIGN_OR_RETURN(load.isa, CapIsa(ReadIsa(), options.isa));
  TESSERA_ASSIGN_OR_RETURN(plan.speed,
                           runtime::PredictSpeed(plan.facts.program, plan.prompt, load));
  return plan;
}

/// The fewest ranks whose parts fit the memory of a device each; 0 when none do.
int64_t LeastRanks(const Plan& plan) {
  for (const RankBytes& rank : plan.ranks)
    if (plan.OfRank(rank) <= plan.device_memory) return rank.ranks;
  return 0;
}

/// Weights as they are, or the best format, over the fewest devices.
std::string RecommendForDevices(const Plan& plan) {
  const std::string memory = HumanBytes(plan.device_memory);
  if (const int64_t least = LeastRanks(plan); least > 0) {
    const auto rank = std::ranges::find(plan.ranks, least, &RankBytes::ranks);
    return fmt::format("--tp {}: {} of the {} of {}", least, HumanBytes(plan.OfRank(*rank)), memory,
                       least == 1 ? "the device" : "each device");
  }
  RankBytes smallest = plan.ranks.back();
  for (const FormatChoice& choice : plan.facts.formats) {
    if (choice.weight_bytes >= plan.memory.weights) continue;
    for (RankBytes rank : plan.ranks) {
      rank.weights = WeightsOfRank(choice.weight_bytes, choice.replicated_bytes, rank.ranks);
      if (plan.OfRank(rank) <= plan.device_memory)
        return fmt::format("--quantize {} --tp {}: {} of the {} of each device", choice.quantize,
                           rank.ranks, HumanBytes(plan.OfRank(rank)), memory);
      smallest = rank;
    }
  }
  return fmt::format(
      "devices with more memory, fewer sequences or a shorter context: of tp{} a rank still needs "
      "{} of {} a device",
      smallest.ranks, HumanBytes(plan.OfRank(smallest)), memory);
}

/// One sentence.
std::string Recommendation(const Plan& plan) {
  if (plan.is_for_devices) return RecommendForDevices(plan);
  if (plan.fits()) {
    const std::string_view kept = plan.facts.is_bundle ? "the bundle" : "the model";
    return fmt::format("{} fits as it is: {} of {} available", kept, HumanBytes(plan.total()),
                       HumanBytes(plan.available));
  }
  std::vector<compiler::QuantiseSize> sizes;
  for (const FormatChoice& choice : plan.facts.formats)
    sizes.push_back({choice.quantize, choice.weight_bytes});
  // The choice of --quantize auto.
  const Result<compiler::QuantiseChoice> choice =
      sizes.empty() ? Fail(NotFound("a bundle is what it is"))
                    : compiler::ChooseQuantisation(
                          sizes, plan.memory.kv_per_token * plan.positions(), plan.machine_memory);
  if (choice.has_value() && choice->quantize != "none")
    return fmt::format("--quantize {}: {}", choice->quantize, choice->reason);
  const uint64_t sequences =
      plan.memory.PositionsIn(plan.available) / static_cast<uint64_t>(plan.facts.context);
  if (sequences > 0)  // Fewer than asked for: otherwise it had fitted.
    return fmt::format("fewer sequences: KV for {} of {} fits", sequences, plan.facts.context);
  const Status status =
      CheckFits(plan.facts, plan.memory, plan.kv_type, plan.positions(), plan.available);
  if (!status.ok()) return status.message();
  return fmt::format("fewer sequences or a shorter context: KV for {} positions fits",
                     plan.memory.PositionsIn(plan.available));
}

json::Object ToJson(const Plan& plan) {
  const PlanFacts& facts = plan.facts;
  const uint64_t fit = plan.memory.PositionsIn(plan.available);
  json::Object out;
  out["model"] = facts.model;
  out["revision"] = facts.revision;
  out["family"] = facts.family;
  out["parameters"] = facts.parameters;
  out["format"] = tensor::Name(facts.format);
  out["context"] = facts.context;
  out["sequences"] = plan.sequences;
  out["memory"] = {{"weights_bytes", plan.memory.weights},
                   {"kv_bytes", plan.memory.kv_per_token * plan.positions()},
                   {"kv_bytes_per_token", plan.memory.kv_per_token},
                   {"scratch_bytes", plan.memory.scratch},
                   {"tokenizer_bytes", plan.memory.tokenizer},
                   {"process_bytes", plan.memory.process},
                   {"total_bytes", plan.total()},
                   {"available_bytes", plan.available},
                   {"resident_bytes_at_start", plan.Resident(0)},
                   {"resident_bytes_after_prompt", plan.Resident(plan.prompt)},
                   {"compile_peak_bytes", plan.compiling.PeakBytes()}};
  const auto stage = [](const StageBytes& bytes) {
    return json::Object{{"private_bytes", bytes.own}, {"mapped_bytes", bytes.mapped}};
  };
  if (!facts.is_bundle)
    out["compiling"] = {{"hashing", stage(plan.compiling.hashing)},
                        {"tokenizer", stage(plan.compiling.tokenizer)},
                        {"packing", stage(plan.compiling.packing)},
                        {"certificate", stage(plan.compiling.certificate)},
                        {"private_bytes", plan.compiling.PrivateBytes()},
                        {"peak_bytes", plan.compiling.PeakBytes()}};
  out["fits"] = plan.fits();
  out["fit"] = {
      {"kv_positions", fit},
      {"context", std::min<uint64_t>(fit, static_cast<uint64_t>(facts.program.dims.max_seq_len))},
      {"sequences", facts.context > 0 ? fit / static_cast<uint64_t>(facts.context) : 0}};
  json::Array ranks;
  for (const RankBytes& rank : plan.ranks)
    ranks.push_back(json::Object{{"tp", rank.ranks},
                                 {"weights_bytes", rank.weights},
                                 {"kv_bytes", rank.kv_per_token * plan.positions()},
                                 {"total_bytes", plan.OfRank(rank)}});
  out["ranks"] = std::move(ranks);
  out["device_memory_bytes"] = plan.device_memory;
  const int64_t least = LeastRanks(plan);
  out["minimum_tp"] = least > 0 ? json::Value(least) : json::Value();
  json::Array formats;
  for (const FormatChoice& choice : facts.formats) {
    const uint64_t need = plan.total() - plan.memory.weights + choice.weight_bytes;
    formats.push_back(json::Object{{"quantize", choice.quantize},
                                   {"weights_bytes", choice.weight_bytes},
                                   {"total_bytes", need},
                                   {"fits", need <= plan.available}});
  }
  out["formats"] = std::move(formats);
  out["disk"] = {{"source_bytes", facts.source_bytes}, {"bundle_bytes", facts.bundle_bytes}};
  out["threads"] = plan.threads;
  json::Object predicted;
  if (plan.mapping_rate > 0) predicted["load_seconds"] = plan.LoadSeconds(plan.mapping_rate);
  if (plan.disk_rate > 0)
    predicted["load_seconds_from_disk"] =
        plan.LoadSeconds(1 / (1 / plan.mapping_rate + 1 / plan.disk_rate));
  if (plan.speed) {
    const runtime::ProgramSpeed& speed = *plan.speed;
    predicted["prompt_tokens"] = plan.prompt;
    predicted["ttft_seconds"] = speed.prefill_seconds;
    predicted["prefill_tokens_per_second"] =
        static_cast<double>(plan.prompt) / speed.prefill_seconds;
    predicted["decode_tokens_per_second"] = 1 / speed.decode_seconds;
    predicted["layers_run"] = speed.layers_run;
  }
  out["predicted"] = std::move(predicted);
  out["recommendation"] = Recommendation(plan);
  json::Array warnings;
  for (const std::string& warning : facts.warnings) warnings.emplace_back(warning);
  out["warnings"] = std::move(warnings);
  return out;
}

void Line(std::string_view name, const std::string& text) {
  fmt::print("{:<12} {}\n", name, text);
}

void PrintMemory(const Plan& plan) {
  const MemoryForecast& m = plan.memory;
  Line("memory",
       fmt::format("{} = weights {} + KV {} ({} x {} positions, {} each) + scratch {} + tokenizer "
                   "{} + process {}; {} available{}",
                   HumanBytes(plan.total()), HumanBytes(m.weights),
                   HumanBytes(m.kv_per_token * plan.positions()), plan.sequences,
                   plan.facts.context, HumanBytes(m.kv_per_token), HumanBytes(m.scratch),
                   HumanBytes(m.tokenizer), HumanBytes(m.process), HumanBytes(plan.available),
                   plan.fits() ? "" : ": DOES NOT FIT"));
  const uint64_t fit = m.PositionsIn(plan.available);
  Line("fits", fmt::format("KV for {} positions: {} sequences of {}", fit,
                           fit / static_cast<uint64_t>(plan.facts.context), plan.facts.context));
  Line("resident", fmt::format("{} at start, {} after a prompt of {}", HumanBytes(plan.Resident(0)),
                               HumanBytes(plan.Resident(plan.prompt)), plan.prompt));
}

void PrintChoices(const Plan& plan) {
  std::string ranks;
  for (const RankBytes& rank : plan.ranks)
    ranks += fmt::format("{}tp{} {}", ranks.empty() ? "" : ", ", rank.ranks,
                         HumanBytes(plan.OfRank(rank)));
  const int64_t least = LeastRanks(plan);
  Line("per rank",
       fmt::format("{}; {} for {} a device", ranks,
                   least > 0 ? fmt::format("at least tp{}", least) : std::string("none is enough"),
                   HumanBytes(plan.device_memory)));
  std::string formats;
  for (const FormatChoice& choice : plan.facts.formats)
    formats += fmt::format("{}{} {}", formats.empty() ? "" : ", ", choice.quantize,
                           HumanBytes(choice.weight_bytes));
  if (!formats.empty()) Line("--quantize", formats);
}

void PrintPlan(const Plan& plan) {
  const PlanFacts& facts = plan.facts;
  Line("model",
       fmt::format("{}{}: {}, {:.1f} M parameters, mostly {}", facts.model,
                   facts.revision.empty() ? "" : "@" + facts.revision.substr(0, 12), facts.family,
                   static_cast<double>(facts.parameters) / 1e6, tensor::Name(facts.format)));
  PrintMemory(plan);
  PrintChoices(plan);
  Line("disk", fmt::format("{} for the source, {} for the bundle", HumanBytes(facts.source_bytes),
                           HumanBytes(facts.bundle_bytes)));
  if (!facts.is_bundle)
    Line("compiling",
         fmt::format("{} of memory at the most, {} of it mapped files",
                     HumanBytes(plan.compiling.PeakBytes()),
                     HumanBytes(plan.compiling.PeakBytes() - plan.compiling.PrivateBytes())));
  if (plan.speed) {
    const runtime::ProgramSpeed& speed = *plan.speed;
    Line("prediction",
         fmt::format("{:.1f} tok/s generation, {:.0f} tok/s prompt, {} to the first token of {} "
                     "with {} threads ({})",
                     1 / speed.decode_seconds,
                     static_cast<double>(plan.prompt) / speed.prefill_seconds,
                     HumanDuration(speed.prefill_seconds), plan.prompt, plan.threads,
                     speed.layers_run > 0
                         ? fmt::format("{} of {} layers were run", speed.layers_run,
                                       facts.program.dims.layers)
                         : std::string("from the machine's rates; too large to run a layer")));
  }
  if (plan.mapping_rate > 0)
    Line("loading",
         fmt::format("{} when the files are in memory{}",
                     HumanDuration(plan.LoadSeconds(plan.mapping_rate)),
                     plan.disk_rate > 0
                         ? fmt::format(", {} from a disk of {} a second",
                                       HumanDuration(plan.LoadSeconds(
                                           1 / (1 / plan.mapping_rate + 1 / plan.disk_rate))),
                                       HumanBytes(static_cast<uint64_t>(plan.disk_rate)))
                         : ""));
  Line("recommended", Recommendation(plan));
  for (const std::string& warning : facts.warnings) Line("warning", warning);
}

}  // namespace

void AddPlan(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "plan", "What a model needs and how fast it will be here; reads headers only");
  verb->add_option("MODEL", options->model, kModelHelp)->required();
  AddHubOptions(verb, &options->hub);
  verb->add_option("--max-seq-len,--max-model-len", options->compile.max_seq_len,
                   "Context to plan for (0 = the model's own)")
      ->check(WholeNumber(0, bundle::kMaxContext));
  verb->add_option("--sequences", options->sequences, "Sequences of that length at a time")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--quantize", options->compile.quantize, "As compile would have it")
      ->capture_default_str();
  verb->add_option("--kv-dtype", options->kv_dtype, "f16 or int8, as serve would have it")
      ->capture_default_str();
  verb->add_option("--device-memory", options->device_memory,
                   "Memory of a device, for the fewest ranks (default: what is free here)")
      ->transform(ByteSize());
  verb->add_option("--prompt", options->prompt,
                   "Prompt length of the predicted time to first token")
      ->check(WholeNumber(1))
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "Threads (0 = one per physical core)")
      ->check(WholeNumber(0, 1024));
  verb->add_option("--isa", options->isa, "Highest instruction set to use, as of run");
  verb->add_flag("--no-certificate", options->no_certificate,
                 "Memory of compiling as compile --no-certificate would have it");
  verb->add_flag("--no-probe", options->no_probe, "Sizes only, at once: predict no speed");
  verb->add_flag("--json", options->json, "Facts as JSON on stdout");
  verb->callback([options, context] {
    RunVerb(context, [&]() -> Status {
      TESSERA_ASSIGN_OR_RETURN(const Plan plan, MakePlan(*options));
      if (options->json) {
        fmt::print("{}", json::SerializePretty(ToJson(plan)));
      } else {
        PrintPlan(plan);
      }
      return {};
    });
  });
}

}  // namespace tessera::cli
