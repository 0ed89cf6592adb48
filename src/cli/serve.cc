// SPDX-License-Identifier: Apache-2.0
//
// tessera serve MODEL: one model behind the OpenAI API. The port is bound first, so that one in use
// is an error before any work, and answers "loading" until the model is there. SIGTERM and SIGINT
// drain: running answers are finished, new ones refused, then the process ends with 0. A second
// signal, or one while loading, ends it at once. SIGHUP reads the key file and certificates again.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>
#include <memory>
#include <optional>

#include "cli/environment.h"
#include "cli/lease.h"
#include "cli/listen_options.h"
#include "cli/loaded_model.h"
#include "cli/rank_member.h"
#include "cli/rank_supervisor.h"
#include "cli/server_signals.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/log.h"
#include "base/process_memory.h"
#include "bundle/manifest.h"
#include "engine/disk_page_store.h"
#include "engine/engine.h"
#include "engine/kv_identity.h"
#include "net/listener.h"
#include "server/request_templates.h"
#include "server/service.h"

namespace tessera::cli {
namespace {

// Where --kv-memory does not say: memory for so many sequences of full length, if the machine has
// it (runtime/kv_budget.h). Most sequences are shorter, so more than these run at a time.
constexpr int64_t kDefaultFullSequences = 8;
constexpr uint64_t kKvDiskBytesDefault = uint64_t{8} << 30;

struct Options {
  LoadOptions load;
  ListenOptions listen{.port = 8000};
  std::optional<int> listen_fd;
  std::string lease;  // A file that whoever started this process holds a lock on.
  std::vector<std::string> served_names;
  std::vector<std::string> api_keys;
  std::string key_file;
  std::string cors_origin;
  bool allow_unauthenticated = false;
  std::vector<std::string> metrics_compat = {"vllm"};
  std::string otlp_endpoint;
  std::string tool_call_parser = "auto";
  std::string reasoning_parser = "none";
  bool trusts_request_templates = false;
  int64_t max_batch = engine::kMaxRunningDefault;
  int64_t queue_length = engine::kQueueLengthDefault;
  std::string speculate = "ngram";
  int64_t target_itl_ms = engine::kTargetItlDefault / std::chrono::milliseconds(1);
  std::optional<uint64_t> prefix_cache_bytes;  // Absent: as much as KV memory has.
  std::string kv_disk;                         // Empty: none.
  uint64_t kv_disk_bytes = kKvDiskBytesDefault;
  int http_threads = 4;
  int drain_seconds = 30;
  RankProcessOptions ranks;
};

/// What is found out of the model's chat, and how an operator's flags change that.
Status SetChatFormat(const Options& options, server::ServedModel* model) {
  model->separates_reasoning = options.reasoning_parser != "none";
  std::vector<std::string> ends;
  for (const text::TokenId id : model->eos_ids) ends.push_back(model->tokenizer->TokenText(id));
  const text::ChatFormatOptions format{
      .tool_call_parser = options.tool_call_parser,
      .reasoning_parser = model->separates_reasoning ? options.reasoning_parser : "auto"};
  if (options.trusts_request_templates)
    model->request_templates =
        std::make_shared<server::RequestTemplates>(model->template_vars, ends, format);
  if (model->chat_template == nullptr) return {};
  TESSERA_ASSIGN_OR_RETURN(
      model->chat_format,
      text::LearnChatFormat(*model->chat_template, model->template_vars, ends, format));
  if (model->separates_reasoning && !model->chat_format.reasoning.has_value())
    return InvalidArgument(
        "--reasoning-parser auto: the chat template has no marks of thoughts; name the parser or "
        "leave the flag out");
  return {};
}

Result<server::ServedModel> MakeServedModel(const Options& options, LoadedModel* loaded) {
  server::ServedModel model;
  std::vector<std::string> names = options.served_names;
  if (names.empty()) names.push_back(loaded->name);
  model.id = names.front();
  model.aliases.assign(names.begin() + 1, names.end());
  model.created_unix_seconds = Clock::Real().UnixSeconds();
  model.fingerprint = loaded->fingerprint;
  model.tokenizer = loaded->tokenizer;
  model.make_detokenizer = [tokenizer = loaded->tokenizer](bool skip_special) {
    return text::Detokenizer::Make(tokenizer, skip_special);
  };
  model.chat_template = loaded->chat_template;
  model.template_vars = loaded->template_vars;
  model.eos_ids = loaded->eos_ids;
  model.grammars = std::make_shared<text::GrammarCache>(model.tokenizer, model.eos_ids);
  model.defaults = loaded->sampling;
  TESSERA_RETURN_IF_ERROR(SetChatFormat(options, &model));
  return model;
}

Result<server::MetricsNames> MetricsNamesOf(const std::vector<std::string>& words) {
  const auto has = [&](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  if (has("none") && words.size() > 1)
    return Fail(InvalidArgument("--metrics-compat: none goes with no other name"));
  return server::MetricsNames{
      .vllm = has("vllm"), .tgi = has("tgi"), .llamacpp = has("llamacpp"), .sglang = has("sglang")};
}

Result<server::otlp::Endpoint> TracesEndpoint(const std::string& url) {
  auto endpoint = server::otlp::ParseEndpoint(url);
  if (!endpoint.has_value()) return Fail(endpoint.error().WithContext("--otlp-endpoint"));
  return endpoint;
}

Result<server::ServiceOptions> MakeServiceOptions(const Options& options) {
  server::ServiceOptions service;
  service.api.access = {.api_keys = options.api_keys, .key_file = options.key_file};
  if (const auto key = Environment("TESSERA_API_KEY"); key.has_value() && options.api_keys.empty())
    service.api.access.api_keys.push_back(*key);
  service.api.cors_origin = options.cors_origin;
  TESSERA_ASSIGN_OR_RETURN(service.api.metrics_names, MetricsNamesOf(options.metrics_compat));
  const std::string traces = options.otlp_endpoint.empty()
                                 ? Environment("OTEL_EXPORTER_OTLP_ENDPOINT").value_or("")
                                 : options.otlp_endpoint;
  if (!traces.empty()) {
    TESSERA_ASSIGN_OR_RETURN(service.traces, TracesEndpoint(traces));
  }
  TESSERA_RETURN_IF_ERROR(SetListenOptions(options.listen, &service.http));
  service.http.listen_fd = options.listen_fd;
  service.http.worker_threads = options.http_threads;
  // Whoever reaches an open server can use all of it.
  const server::AccessOptions& access = service.api.access;
  service.http.loopback_only = access.api_keys.empty() && access.key_file.empty() &&
                               options.listen.tls_client_ca.empty() &&
                               !options.allow_unauthenticated;
  service.api.drain_patience = std::chrono::seconds(options.drain_seconds);
  return service;
}

/// For the metrics page.
server::DownloadFigures MeterOf(const DownloadFigures& figures) {
  server::DownloadFigures meter{.files = {},
                                .done = figures.progress.done,
                                .total = figures.progress.total,
                                .fetched = figures.fetched,
                                .bytes_per_second = figures.bytes_per_second,
                                .seconds_left = figures.seconds_left};
  for (const hub::DownloadProgress::File& file : figures.progress.files)
    meter.files.push_back({std::string(file.name), file.done, file.total});
  return meter;
}

/// An error of listening; an address that would be open to anybody comes with the ways out.
Status WithAdvice(const Status& status) {
  if (status.code() != Code::kFailedPrecondition) return status;
  return InvalidArgument(
      fmt::format("{}, and anybody could use the server: ask for keys with --api-keys FILE "
                  "(`tessera key` makes them) or --api-key KEY, for client certificates with "
                  "--tls-client-ca FILE, or leave it open with --allow-unauthenticated",
                  status.ToString()));
}

Result<std::unique_ptr<server::HttpService>> Listen(
    const Options& options, std::shared_ptr<const server::DownloadMeter> downloads) {
  TESSERA_ASSIGN_OR_RETURN(server::ServiceOptions service, MakeServiceOptions(options));
  service.api.downloads = std::move(downloads);
  auto listening = server::HttpService::Listen(std::move(service), Clock::Real());
  if (listening.has_value()) return listening;
  return Fail(WithAdvice(listening.error()));
}

void Reload(server::HttpService* service) {
  const auto report = service->Reload();  // It logs what is wrong.
  if (!report.has_value()) return;
  Note("SIGHUP: {} keys{}\n", report->keys,
       report->has_certificate ? ", certificate read again" : "");
}

/// Pages of the prefix cache.
Result<int64_t> PrefixCachePages(const std::optional<uint64_t>& bytes,
                                 const runtime::ModelShape& shape) {
  if (!bytes.has_value()) return engine::kPrefixCachePagesDefault;
  const auto page_bytes = static_cast<uint64_t>(shape.page_tokens * shape.kv_bytes_per_token);
  if (*bytes > 0 && *bytes < page_bytes)
    return Fail(InvalidArgument(fmt::format(
        "--prefix-cache: {} bytes are less than one page of {} tokens, which needs {}; \"off\" "
        "switches the cache off",
        *bytes, shape.page_tokens, page_bytes)));
  return static_cast<int64_t>(*bytes / page_bytes);
}

/// Whose the large parts of the process's memory are, for the metrics page.
std::vector<server::OwnedMemory> MemoryOwners(const LoadedModel& loaded) {
  std::vector<server::OwnedMemory> owners;
  for (const runtime::HeldMemory& held : loaded.session->memory())
    owners.push_back({std::string(held.purpose),
                      {reinterpret_cast<uint64_t>(held.bytes.data()), held.bytes.size()},
                      held.is_file});
  if (loaded.bundle.empty()) return owners;
  const auto tables = MappingsOf(loaded.bundle / bundle::kTokenizerTableFile);
  if (!tables.has_value()) return owners;  // It is read whole then, and heap.
  for (const AddressRange& range : *tables) owners.push_back({"tokenizer", range, true});
  return owners;
}

double SecondsSince(TimePoint begin) {
  return Seconds(Clock::Real().Now() - begin);
}

/// The pages on disk of --kv-disk; null without it.
Result<std::shared_ptr<engine::PageStore>> OpenKvDisk(const Options& options, LoadedModel* loaded) {
  if (options.kv_disk.empty()) return nullptr;
  if (options.prefix_cache_bytes == 0)
    return Fail(
        InvalidArgument("--kv-disk keeps what the prefix cache gives up: it has no use "
                        "with --prefix-cache off"));
  const runtime::ModelShape& shape = loaded->session->shape();
  TESSERA_ASSIGN_OR_RETURN(const engine::PageHash root,
                           engine::KvIdentity(loaded->kv_model, loaded->session.get()));
  auto store =
      engine::DiskPageStore::Open({.path = options.kv_disk,
                                   .bytes_max = static_cast<int64_t>(std::min<uint64_t>(
                                       options.kv_disk_bytes, std::numeric_limits<int64_t>::max())),
                                   .page_bytes = shape.page_tokens * shape.kv_bytes_per_token,
                                   .root = root},
                                  &Clock::Real());
  if (!store.has_value()) return Fail(store.error().WithContext("--kv-disk"));
  const engine::PageStoreStats stats = (*store)->stats();
  Note("KV pages on disk: {} in {}, {} of at most {}\n", stats.pages, options.kv_disk,
       HumanBytes(static_cast<uint64_t>(stats.bytes)), HumanBytes(options.kv_disk_bytes));
  return *std::move(store);
}

void PrintServing(const Options& options, const server::ServedModel& model,
                  const runtime::ModelShape& shape, const std::string& address) {
  const int64_t kv_tokens = shape.page_count * shape.page_tokens;
  Note(
      "serving {} at {}://{}, context {} tokens, KV memory for {} tokens (at most {}), up to "
      "{} requests at a time\n",
      model.id, options.listen.scheme(), address, shape.max_seq_len, kv_tokens,
      HumanBytes(static_cast<uint64_t>(kv_tokens * shape.kv_bytes_per_token)), options.max_batch);
  const engine::SamplingDefaults& defaults = model.defaults;
  Note(
      "sampling unless a request says otherwise: temperature {}, top_p {}, top_k {}, "
      "min_p {}, repetition_penalty {}\n",
      defaults.temperature.value_or(1.0), defaults.top_p.value_or(1.0), defaults.top_k.value_or(0),
      defaults.min_p.value_or(0.0), defaults.repetition_penalty.value_or(1.0));
}

/// The supervisor of ranks that are processes: it has the port, and loads nothing.
Status ServeByRanks(const Options& options, const std::vector<std::string>& arguments) {
  const int64_t ranks = options.load.compile.tensor_parallel;
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> mpirun, MpirunOptions(options.ranks, ranks));
  TESSERA_ASSIGN_OR_RETURN(const server::ServiceOptions service, MakeServiceOptions(options));
  const auto listener = net::OpenListener(service.http);
  if (!listener.has_value()) return WithAdvice(listener.error());
  return SuperviseRanks({.ranks = static_cast<int>(ranks),
                         .mpirun_options = std::move(mpirun),
                         .arguments = arguments,
                         .listener = *listener,
                         .lease = options.lease,
                         .drain_seconds = options.drain_seconds,
                         .restarts = options.ranks.restarts});
}

/// `member`: of a supervised group, in which ranks have no address of their own; else null.
Status ServeHere(const Options& options, RankMember* member) {
  LoadOptions load = options.load;
  if (member != nullptr) load.before_abort = [member](auto why) { member->TellError(why); };
  load.kv.max_sequences = std::min(kDefaultFullSequences, options.max_batch);
  // Rank 0 of a group of processes has the port; the others follow it in here until it ends.
  if (JobRank() > 0) {
    if (member != nullptr) TESSERA_RETURN_IF_ERROR(member->Watch());
    return StatusOf(LoadModel(load));
  }
  std::unique_ptr<server::HttpService> service;
  ServerSignals signals;  // Ends first: a reload needs the service.
  TESSERA_RETURN_IF_ERROR(signals.Start());
  if (member != nullptr) TESSERA_RETURN_IF_ERROR(member->Watch());
  auto downloads = std::make_shared<server::DownloadMeter>();
  load.hub.on_download = [downloads](const DownloadFigures& figures) {
    downloads->Set(MeterOf(figures));
  };
  TESSERA_ASSIGN_OR_RETURN(service, Listen(options, downloads));
  signals.OnHangup([raw = service.get()] { Reload(raw); });
  if (!options.lease.empty()) TESSERA_RETURN_IF_ERROR(EndWithLease(options.lease));
  Note("listening on {}, loading {}\n", service->address(),
       options.load.parts.any()     ? options.load.parts.program
       : options.load.model.empty() ? options.load.bundle
                                    : options.load.model);
  const TimePoint load_begin = Clock::Real().Now();
  TESSERA_ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(load));
  const double model_seconds = SecondsSince(load_begin);
  const runtime::ModelShape shape = loaded.session->shape();
  TESSERA_ASSIGN_OR_RETURN(server::ServedModel model, MakeServedModel(options, &loaded));
  model.memory = MemoryOwners(loaded);
  engine::EngineOptions engine_options;
  engine_options.max_running = options.max_batch;
  engine_options.queue_length = options.queue_length;
  if (options.speculate == "ngram") engine_options.speculation = engine::Speculation::kNgram;
  engine_options.target_itl = std::chrono::milliseconds(options.target_itl_ms);
  TESSERA_ASSIGN_OR_RETURN(engine_options.prefix_cache_pages,
                           PrefixCachePages(options.prefix_cache_bytes, shape));
  TESSERA_ASSIGN_OR_RETURN(engine_options.page_store, OpenKvDisk(options, &loaded));
  const TimePoint engine_begin = Clock::Real().Now();
  TESSERA_ASSIGN_OR_RETURN(
      auto engine, engine::Engine::Start(std::move(loaded.session), engine_options, Clock::Real()));
  model.load_seconds = {{"model", model_seconds}, {"engine", SecondsSince(engine_begin)}};
  signals.BeginServing();  // Before the line that people and scripts wait for.
  PrintServing(options, model, shape, service->address());
  service->Serve(std::move(model), std::move(engine));
  if (member != nullptr) member->TellReady();

  const int signal = signals.Wait();
  if (member != nullptr) member->TellLeaving();
  Note("{}: finishing running requests, at most {} s\n", signal == SIGTERM ? "SIGTERM" : "SIGINT",
       options.drain_seconds);
  return service->Drain(std::chrono::seconds(options.drain_seconds));
}

Status ServeAsRank(Options options) {
  TESSERA_ASSIGN_OR_RETURN(RankMember member, RankMember::Join());
  // The supervisor looks after both.
  options.listen_fd = member.TakeListener();
  options.lease.clear();
  const Status status = ServeHere(options, &member);
  if (!status.ok()) member.TellError(status.ToString());
  return status;
}

Status Serve(const Options& options, const std::vector<std::string>& arguments) {
  if (IsSupervisedRank()) return ServeAsRank(options);
  return options.ranks.is_on ? ServeByRanks(options, arguments) : ServeHere(options, nullptr);
}

}  // namespace

namespace {

std::vector<std::string> WithNames(std::vector<std::string> words,
                                   const std::vector<std::string_view>& names) {
  words.insert(words.end(), names.begin(), names.end());
  return words;
}

}  // namespace

void AddServe(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand("serve", "One model behind the OpenAI API");
  AddServingOptions(verb, &options->load);
  AddRankProcessOptions(verb, &options->ranks);
  AddListenOptions(verb, &options->listen);
  verb->add_option("--listen-fd", options->listen_fd,
                   "A listening socket that this process inherited, instead of --host and --port")
      ->check(WholeNumber(3, 1 << 20))
      ->excludes("--port")
      ->excludes("--host");
  verb->add_option("--lease", options->lease,
                   "Drain and end when nobody has held a lock on this file for 30 seconds: how a "
                   "gateway's workers outlive its restart but not its end")
      ->check(PlainText());
  verb->add_option(
          "--served-model-name", options->served_names,
          "What clients name in `model`; the first one is reported (default: the model's own)")
      ->check(PlainText())
      ->delimiter(',');
  verb->add_option("--api-key", options->api_keys,
                   "Ask for this bearer key, or one of several (else $TESSERA_API_KEY)")
      ->check(PlainText())
      ->allow_extra_args(false);  // Or it would take MODEL, too.
  verb->add_option("--api-keys", options->key_file,
                   "JSON file of hashed keys with scopes and limits, made by `tessera key`")
      ->check(PlainText());
  verb->add_option("--cors-origin", options->cors_origin,
                   "Let pages of this origin call (* = any)");
  verb->add_option("--tls-client-ca", options->listen.tls_client_ca,
                   "PEM certificates of CAs; clients need one that they signed (mutual TLS)");
  verb->add_flag("--allow-unauthenticated", options->allow_unauthenticated,
                 "Listen beyond loopback although nobody is asked for a key or certificate");
  verb->add_option("--metrics-compat", options->metrics_compat,
                   "Servers whose metric names the page has beside ours, or none")
      ->check(CLI::IsMember({"vllm", "tgi", "llamacpp", "sglang", "none"}))
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--otlp-endpoint", options->otlp_endpoint,
                   "Collector of traces, such as http://localhost:4318 (else "
                   "$OTEL_EXPORTER_OTLP_ENDPOINT; none = no traces are sent)")
      ->check(PlainText());
  verb->add_option("--tool-call-parser", options->tool_call_parser,
                   "How the model writes calls of functions; auto learns it from the chat template")
      ->check(CLI::IsMember(WithNames({"auto"}, text::ToolSyntaxNames())))
      ->capture_default_str();
  verb->add_option("--reasoning-parser", options->reasoning_parser,
                   "How the model marks its thoughts, which then are `reasoning_content` unless a "
                   "request says otherwise; auto finds it in the chat template, none leaves them "
                   "in the text")
      ->check(CLI::IsMember(WithNames({"none", "auto"}, text::ReasoningSyntaxNames())))
      ->capture_default_str();
  verb->add_flag("--trust-request-chat-template", options->trusts_request_templates,
                 "Let requests bring a chat template of their own (`chat_template`)");
  verb->add_option("--prefix-cache", options->prefix_cache_bytes,
                   "KV memory that prompts' beginnings may keep while nobody uses them, given up "
                   "when a request needs it; \"off\" computes every prompt in full (default: all "
                   "of --kv-memory)")
      ->transform(ByteSizeOrOff());
  CLI::Option* kv_disk =
      verb->add_option("--kv-disk", options->kv_disk,
                       "A folder of this server's own for KV of prompts' beginnings that memory "
                       "has no room for; it outlives the server. Whoever can read it can read "
                       "the prompts (default: none)")
          ->check(PlainText());
  verb->add_option("--kv-disk-size", options->kv_disk_bytes,
                   "What --kv-disk may hold; what was used longest ago goes first")
      ->transform(ByteSize())
      ->needs(kv_disk)
      ->default_str("8Gi");
  verb->add_option("--queue-length", options->queue_length, "Requests that may wait; beyond it 429")
      ->check(WholeNumber(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--target-itl-ms", options->target_itl_ms,
                   "Time between two tokens of an answer that prompts of others may stretch a step "
                   "to; 0 = any")
      ->check(WholeNumber(0, 60000))
      ->capture_default_str();
  verb->add_option("--speculate", options->speculate,
                   "Guess following tokens by what followed the same words before, and check "
                   "several in one step while that pays (ngram); the answers are the same")
      ->check(CLI::IsMember({"ngram", "off"}))
      ->capture_default_str();
  verb->add_option("--http-threads", options->http_threads,
                   "Threads that parse, tokenise and render")
      ->check(WholeNumber(1, 256))
      ->capture_default_str();
  verb->add_option("--drain-seconds", options->drain_seconds,
                   "Patience with running requests at SIGTERM")
      ->check(WholeNumber(0, 86400))
      ->capture_default_str();
  verb->add_option("--max-batch,--max-num-seqs", options->max_batch,
                   "Requests that are answered at the same time")
      ->check(WholeNumber(1, options->load.max_rows))
      ->capture_default_str();
  verb->callback([options, context] {
    if (const Status status = RequireModel(options->load); !status.ok())
      return ReportUsage(context, status);
    RunVerb(context, [&] { return Serve(*options, context->arguments); });
  });
}

}  // namespace tessera::cli
