// SPDX-License-Identifier: Apache-2.0
#include "cli/foreign_flags.h"

#include <fmt/format.h>

namespace tessera::cli {
namespace {

struct ForeignFlag {
  std::string_view names;  // Separated by spaces.
  std::string_view answer;
};

constexpr ForeignFlag kForeignFlags[] = {
    // vLLM and SGLang.
    {"-tp --tp-size", "name it --tp N (or --tensor-parallel-size N)"},
    {"--tensor-parallel-size --tp", "belongs to the verbs that make or run a bundle"},
    {"--pipeline-parallel-size -pp --data-parallel-size -dp --dp --dp-size",
     "not built yet: one process serves one copy of the model; start more processes on other "
     "ports"},
    {"--enable-expert-parallel", "not built yet: no family with experts is supported"},
    {"--gpu-memory-utilization --mem-fraction-static",
     "there is no GPU memory to share out; --kv-memory SIZE sets the memory of the KV cache"},
    {"--context-length", "name it --max-seq-len N (or --max-model-len N)"},
    {"--max-running-requests", "name it --max-batch N of serve (or --max-num-seqs N)"},
    {"--max-total-tokens --num-gpu-blocks-override",
     "the KV cache is sized in bytes: --kv-memory SIZE"},
    {"--max-num-batched-tokens --chunked-prefill-size",
     "a step takes up to 512 tokens and prompts are cut to fit; there is nothing to set"},
    {"--block-size --page-size", "pages are set when compiling: compile --block-seq-stride N"},
    {"--dtype", "weights run in the formats of the model's files; compile --quantize changes them"},
    {"--quantization -q",
     "the quantisation is read from the model's files; compile --quantize makes another one"},
    {"--kv-cache-dtype --cache-type-k --cache-type-v -ctk -ctv",
     "name it --kv-dtype f16 or int8 (run, serve, bench); keys and values have the same type"},
    {"--trust-remote-code",
     "code of a model repository is never run, and none is needed: leave it out"},
    {"--enforce-eager", "there are no captured graphs to switch off: leave it out"},
    {"--enable-prefix-caching --no-enable-prefix-caching --cache-reuse --disable-radix-cache",
     "prefixes are cached unless serve has --prefix-cache off"},
    {"--enable-chunked-prefill --no-enable-chunked-prefill",
     "prompts are always computed in chunks, with the same answer: leave it out"},
    {"--chat-template-content-format",
     "the form that the template reads is found out from the template: leave it out"},
    {"--enable-auto-tool-choice", "calls of functions are always looked for: leave it out"},
    {"--load-format", "the format is read from the file's header: leave it out"},
    {"--enable-lora --lora-modules --lora", "not built yet: adapters cannot be loaded"},
    {"--speculative-config --speculative-model --model-draft -md",
     "draft models are not built yet; --speculate ngram of serve guesses without one"},
    {"--generation-config",
     "sampling defaults come from the model's generation_config.json; requests override them"},
    {"--swap-space --cpu-offload-gb", "weights and KV cache are in memory already: leave it out"},
    {"--otlp-traces-endpoint", "use --otlp-endpoint with the http address of a collector"},
    {"--disable-log-requests --disable-log-stats --uvicorn-log-level",
     "use --log-level and --log-format"},
    {"--allowed-origins", "name it --cors-origin ORIGIN"},
    {"--ssl-certfile", "name it --tls-cert FILE"},
    {"--ssl-keyfile", "name it --tls-key FILE"},
    {"--ssl-ca-certs", "name it --tls-client-ca FILE"},
    {"--api-key-file", "name it --api-keys FILE; `tessera key` makes its entries"},
    {"--download-dir", "name it --hf-cache-dir DIR; bundles are kept in --cache-dir"},
    // iree-benchmark-module and iree-run-module.
    {"--task_topology_group_count --task_topology_max_group_count", "name it --threads N"},
    {"--task_topology_nodes --task_topology_cpu_ids",
     "--device_ids of the verbs that run a model chooses nodes or cores; taskset limits all verbs"},
    {"--module_mode --parameter_mode --device_allocator --device_lead_allocator",
     "program and parameters are mapped, never copied: leave it out"},
    {"--batch_concurrency", "calls of a batch run one after the other: leave it out"},
    {"--list_devices --dump_devices --list_drivers",
     "the one device is cpu; tessera doctor tells what it can do"},
    {"--device_profiling_mode --device_profiling_file --trace_execution",
     "bench --roofline tells where the time goes; perf sees the kernels by name"},
    // llama.cpp and ollama.
    {"-m --model", "name the model as the argument MODEL, without a flag"},
    {"-ngl --n-gpu-layers --gpu-layers",
     "all layers run on the CPU; GPUs are not built yet: leave it out"},
    {"-c --ctx-size", "name it --max-seq-len N (0 = the model's own)"},
    {"-t --threads-batch -tb", "name it --threads N; prompts and generation use the same threads"},
    {"--n-predict", "name it -n N (--max-tokens N)"},
    {"-np --parallel", "name it --max-batch N (serve)"},
    {"-b --batch-size -ub --ubatch-size",
     "a step takes up to 512 tokens and prompts are cut to fit; there is nothing to set"},
    {"-fa --flash-attn", "attention never stores its scores; there is nothing to switch on"},
    {"--mlock --no-mmap",
     "parameters are mapped from the bundle and shared between processes; there is no other way"},
    {"--jinja --no-jinja", "chat templates are always rendered as Jinja: leave it out"},
    {"--chat-template-file", "name it --chat-template FILE"},
    {"-sys --system-prompt", "name it --system TEXT (run)"},
    {"--temp", "name it --temperature T"},
    {"-cnv --conversation -i --interactive", "run MODEL without -p is a conversation"},
    {"-hf --hf-repo -hfr", "name the repository as MODEL: org/repo[@revision][:QUANT]"},
    {"--no-warmup --warmup", "the server proves itself with one step at start: leave it out"},
    // Our own, of later issues.
    {"--model-path --hf-model", "name the model as the argument MODEL, without a flag"},
    {"--bundle", "name the bundle as MODEL"},
    {"--hf-cache-dir --revision --offline", "belongs to the verbs that take a MODEL"},
    {"--device --device_ids", "belongs to the verbs that run a model"},
    {"--ensure-export --ensure-compile", "belongs to the verbs that make a bundle"},
    {"--compile-target --quantize --sharding-mode --bs-prefill --bs-decode --block-seq-stride "
     "--device-block-count",
     "belongs to compile: make the bundle with `tessera compile MODEL ...` and name it here"},
    {"--output-dev-artifacts-dir --emit-dataset", "belongs to compile"},
    {"--tokenizer_json --tokenizer_config_json --model_config --vmfb --program --parameters",
     "belongs to serve and run; name a bundle, a folder or a GGUF as MODEL"},
    {"--kv-tokens", "the KV cache is sized in bytes: --kv-memory SIZE"},
};

bool HasName(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

}  // namespace

std::optional<std::string_view> ExplainForeignFlag(std::string_view flag) {
  for (const ForeignFlag& known : kForeignFlags)
    if (HasName(known.names, flag)) return known.answer;
  return std::nullopt;
}

std::optional<std::string> FindForeignFlag(const std::vector<std::string>& arguments,
                                           const std::function<FlagUse(const std::string&)>& use) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") break;
    if (argument.size() < 2 || argument[0] != '-') continue;
    const std::string name = argument.substr(0, argument.find('='));
    const FlagUse known = use(name);
    if (known == FlagUse::kTakesValue && name.size() == argument.size()) ++i;
    if (known != FlagUse::kUnknown) continue;
    if (const auto answer = ExplainForeignFlag(name)) return fmt::format("{}: {}", name, *answer);
  }
  return std::nullopt;
}

}  // namespace tessera::cli
