// SPDX-License-Identifier: Apache-2.0
//
// tessera plan MODEL: what a model needs and how fast it will be here, from headers and a short
// measurement of the machine; no weight is read. Formulas: docs/cli.md, section plan.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/model_argument.h"
#include "cli/plan_facts.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/json.h"
#include "bundle/limits.h"
#include "runtime/machine_probe.h"

namespace tessera::cli {
namespace {

// A step reaches this share of what the probes measure (barriers, norms, tails); see docs/cli.md.
constexpr double kBandwidthShare = 0.8;
constexpr double kMatmulShare = 0.75;
// Scratch, page tables and the tokenizer beside weights and KV.
constexpr uint64_t kFixedBytes = 60u << 20;

struct Options {
  std::string model;
  HubOptions hub;
  int64_t context = 0;
  int64_t prompt = 512;
  int threads = 0;
  bool json = false;
};

struct Speed {
  double bandwidth = 0;    // Bytes a second, all threads.
  double matmul_rate = 0;  // Multiply-accumulates a second, all threads.
};

Result<json::Object> MakePlan(const Options& options) {
  TESSERA_ASSIGN_OR_RETURN(const PlanFacts facts,
                           ReadPlanFacts(options.model, options.hub, options.context));
  const Topology topology = ReadTopology();
  const int threads = options.threads > 0 ? options.threads : topology.DefaultThreads();
  TESSERA_ASSIGN_OR_RETURN(const double bandwidth,
                           runtime::MeasureReadBandwidth(topology, threads));
  const Speed speed{bandwidth, runtime::MeasureMatmulRate(facts.format) * threads};
  const double decode_seconds =
      static_cast<double>(facts.bytes_read_per_step) / (speed.bandwidth * kBandwidthShare);
  const double prefill_rate = speed.matmul_rate > 0 ? speed.matmul_rate * kMatmulShare /
                                                          static_cast<double>(facts.layer_weights)
                                                    : 0;
  const uint64_t memory = facts.weight_bytes + facts.kv_bytes + kFixedBytes;

  json::Object plan;
  plan["model"] = options.model;
  plan["family"] = facts.name;
  plan["parameters"] = facts.parameters;
  plan["format"] = tensor::Name(facts.format);
  plan["kernels"] = facts.has_kernels ? "native" : "none";
  plan["context"] = facts.context;
  plan["memory"] = {{"weights_bytes", facts.weight_bytes},
                    {"kv_bytes", facts.kv_bytes},
                    {"kv_bytes_per_token", facts.kv_bytes_per_token},
                    {"other_bytes", kFixedBytes},
                    {"total_bytes", memory},
                    {"available_bytes", topology.memory_available}};
  plan["fits"] = memory <= topology.memory_available;
  plan["disk"] = {{"source_bytes", facts.source_bytes}, {"bundle_bytes", facts.bundle_bytes}};
  plan["threads"] = threads;
  plan["tp"] = 1;
  plan["predicted"] = {
      {"decode_tokens_per_second", 1 / decode_seconds},
      {"prefill_tokens_per_second", prefill_rate},
      {"prompt_tokens", options.prompt},
      {"ttft_seconds",
       prefill_rate > 0 ? static_cast<double>(options.prompt) / prefill_rate + decode_seconds : 0}};
  plan["measured"] = {{"read_bytes_per_second", speed.bandwidth},
                      {"matmul_macs_per_second", speed.matmul_rate}};
  json::Array warnings;
  for (const std::string& warning : facts.warnings) warnings.emplace_back(warning);
  plan["warnings"] = std::move(warnings);
  return plan;
}

double Number(const json::Value& value) {
  return value.to_number<double>();
}
std::string Bytes(const json::Value& value) {
  return HumanBytes(static_cast<uint64_t>(Number(value)));
}

void PrintPlan(const json::Object& plan) {
  const auto line = [](std::string_view name, const std::string& text) {
    fmt::print("{:<12} {}\n", name, text);
  };
  const json::Object& memory = plan.at("memory").get_object();
  const json::Object& predicted = plan.at("predicted").get_object();
  line("model", fmt::format("{}, {:.1f} M parameters, mostly {}",
                            std::string_view(plan.at("family").get_string()),
                            Number(plan.at("parameters")) / 1e6,
                            std::string_view(plan.at("format").get_string())));
  line("memory",
       fmt::format("{} = weights {} + KV {} ({} positions, {} each) + {} other; {} available{}",
                   Bytes(memory.at("total_bytes")), Bytes(memory.at("weights_bytes")),
                   Bytes(memory.at("kv_bytes")), Number(plan.at("context")),
                   Bytes(memory.at("kv_bytes_per_token")), Bytes(memory.at("other_bytes")),
                   Bytes(memory.at("available_bytes")),
                   plan.at("fits").get_bool() ? "" : ": DOES NOT FIT"));
  line("disk", fmt::format("{} for the source, {} for the bundle",
                           Bytes(plan.at("disk").at("source_bytes")),
                           Bytes(plan.at("disk").at("bundle_bytes"))));
  line("prediction",
       fmt::format("{:.1f} tok/s generation, {:.0f} tok/s prompt, {} to the first token of {} with "
                   "{} threads",
                   Number(predicted.at("decode_tokens_per_second")),
                   Number(predicted.at("prefill_tokens_per_second")),
                   HumanDuration(Number(predicted.at("ttft_seconds"))),
                   Number(predicted.at("prompt_tokens")), Number(plan.at("threads"))));
  for (const json::Value& warning : plan.at("warnings").get_array())
    line("warning", std::string(warning.get_string()));
}

}  // namespace

void AddPlan(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "plan", "What a model needs and how fast it will be here; reads headers only");
  verb->add_option("MODEL", options->model, kModelHelp)->required();
  AddHubOptions(verb, &options->hub);
  verb->add_option("--max-seq-len,--max-model-len", options->context,
                   "Context to plan for (0 = the model's own)")
      ->check(WholeNumber(0, bundle::kMaxContext));
  verb->add_option("--prompt", options->prompt,
                   "Prompt length of the predicted time to first token")
      ->check(WholeNumber(1))
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "Threads (0 = one per physical core)")
      ->check(WholeNumber(0, 1024));
  verb->add_flag("--json", options->json, "Facts as JSON on stdout");
  verb->callback([options, context] {
    RunVerb(context, [&]() -> Status {
      TESSERA_ASSIGN_OR_RETURN(const json::Object plan, MakePlan(*options));
      if (options->json) {
        fmt::print("{}", json::SerializePretty(plan));
      } else {
        PrintPlan(plan);
      }
      return {};
    });
  });
}

}  // namespace tessera::cli
