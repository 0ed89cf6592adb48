// SPDX-License-Identifier: Apache-2.0
#include "cli/loaded_model.h"

#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <future>

#include "cli/early_tokenizer.h"
#include "cli/emit_dataset.h"
#include "cli/environment.h"
#include "cli/model_argument.h"
#include "cli/plan_check.h"
#include "cli/progress.h"
#include "cli/rank_options.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "cli/validators.h"

#include "base/file.h"
#include "base/topology.h"
#include "bundle/bundle.h"
#include "bundle/hash_memo.h"
#include "bundle/limits.h"
#include "certify/certify.h"
#include "compiler/importance.h"
#include "compiler/quantise_choice.h"
#include "model/generation_defaults.h"
#include "model/limits.h"
#include "model/special_tokens.h"
#include "model/text_sources.h"
#include "runtime/load.h"
#include "runtime/open_transport.h"
#include "text/tokenizer_table.h"

namespace tessera::cli {
namespace {

/// Raised when EarlyTokenizer makes something else of the same model:
/// bundles are made anew.
constexpr std::string_view kTokenizerFilesVersion = "1";

/// Everything but the session, from the documents; the tokenizer if it is not there yet.
Status ReadDocuments(const LoadOptions& options, const DocumentPaths& paths, LoadedModel* loaded) {
  if (loaded->tokenizer == nullptr) {
    TESSERA_ASSIGN_OR_RETURN(loaded->tokenizer, ReadTokenizer(paths.tokenizer));
  }
  TESSERA_ASSIGN_OR_RETURN(
      const model::JsonFile tokenizer_config,
      model::ReadOptionalJsonFile(paths.tokenizer_config, model::kMaxTokenizerConfigBytes));
  TESSERA_ASSIGN_OR_RETURN(
      const model::JsonFile generation,
      model::ReadOptionalJsonFile(paths.generation_config, model::kMaxConfigBytes));
  const model::RepositoryJson files{
      .generation = generation.value.if_object(),
      .tokenizer_config = tokenizer_config.value.if_object(),
      .find_token = [&](std::string_view text) -> std::optional<int64_t> {
        const text::TokenId id = loaded->tokenizer->FindToken(text);
        return id < 0 ? std::nullopt : std::optional<int64_t>(id);
      }};
  TESSERA_ASSIGN_OR_RETURN(const model::SpecialTokens special,
                           model::ReadHfSpecialTokens(files, loaded->session->shape().vocab_size));
  for (const int64_t id : special.eos_ids)
    loaded->eos_ids.push_back(static_cast<text::TokenId>(id));
  loaded->template_vars["bos_token"] = special.bos_text;
  loaded->template_vars["eos_token"] = special.eos_text;
  std::vector<std::string> warnings;
  if (generation.value.is_object()) {
    TESSERA_ASSIGN_OR_RETURN(const model::GenerationDefaults defaults,
                             model::ReadHfGeneration(generation.value.get_object(), warnings));
    // do_sample: false says greedy, whatever temperature stands beside it.
    const bool is_greedy = defaults.do_sample == false;
    loaded->sampling = {.temperature = is_greedy ? 0 : defaults.temperature,
                        .top_p = defaults.top_p,
                        .top_k = defaults.top_k,
                        .min_p = defaults.min_p,
                        .repetition_penalty = defaults.repetition_penalty};
  }
  for (const std::string& warning : warnings) Note("warning: {}\n", warning);

  std::filesystem::path template_path = options.chat_template;
  if (template_path.empty()) template_path = paths.chat_template;
  if (options.chat_template.empty() && !std::filesystem::exists(template_path)) return {};
  TESSERA_ASSIGN_OR_RETURN(const std::string template_text, model::ReadTemplateFile(template_path));
  auto chat_template = text::ChatTemplate::Parse(template_text);
  if (!chat_template.has_value()) return chat_template.error().WithContext(template_path.string());
  loaded->chat_template = *std::move(chat_template);
  return {};
}

/// Parsing headers and the tokenizer's JSON leaves tens of megabytes free but resident in the heap;
/// a server would carry them for its whole life.
void ReturnFreedMemory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

/// Flags of both kinds of verbs, but MODEL.
void AddCommonOptions(CLI::App* verb, LoadOptions* options) {
  options->given = [verb](std::string_view flag) {
    const CLI::Option* option = verb->get_option_no_throw(std::string(flag));
    return option != nullptr && option->count() > 0;
  };
  verb->add_option("--cache-dir", options->cache_dir,
                   "Where bundles are kept (else $TESSERA_CACHE, $XDG_CACHE_HOME/tessera, "
                   "~/.cache/tessera)");
  verb->add_option("--max-seq-len,--max-model-len", options->compile.max_seq_len,
                   "Longest sequence in tokens (0 = the model's own)")
      ->check(WholeNumber(0, bundle::kMaxContext));
  verb->add_option("--compile-target", options->compile.target,
                   "What a bundle is made for: cpu, x86-64-v3 or x86-64-v4")
      ->capture_default_str();
  verb->add_option("--quantize", options->compile.quantize,
                   "Formats that float matrices of a repository are stored in: as of compile")
      ->capture_default_str();
  AddEnsureOptions(verb, &options->compile);
  AddDeviceOption(verb);
  verb->add_option(
          "--device_ids", options->device_ids,
          "NUMA nodes to run on, or cores where the machine has one node: \"0 1\"; as many "
          "as ranks of --tp give each rank one")
      ->check(WholeNumber(0, 4096));
  AddRankOptions(verb, &options->compile);
  verb->add_option("--threads", options->threads, "Threads (0 = one per physical core)")
      ->check(WholeNumber(0, 1024));
  verb->add_option(
      "--isa", options->isa,
      "Highest instruction set to use: auto, ref, avx2, avx_vnni, avx512, avx512_vnni");
  AddHubOptions(verb, &options->hub);
  verb->add_option(
          "--kv-memory", options->kv.bytes,
          "Memory of the KV cache: bytes, or with k, M, G, Ki, Mi, Gi (see docs/cli.md for "
          "the default)")
      ->transform(ByteSize());
  verb->add_option("--kv-dtype", options->kv_dtype,
                   "Type of the KV cache: f16, or int8 with one scale a position and head, about "
                   "half the memory");
  verb->add_option("--chat-template", options->chat_template,
                   "A Jinja file instead of the model's own chat template");
  verb->add_flag("--verify", options->verify, "Check the hash of the parameters before loading");
}

/// One progress bar per stage, and reasons between them.
class CompileDisplay {
 public:
  void Show(const compiler::Progress& progress) {
    if (is_quiet_) return;
    if (progress.stage != stage_) {
      EndStage();
      stage_ = progress.stage;
      bar_ = std::make_unique<Progress>(stage_);
    }
    bar_->Update(progress.done, progress.total);
  }
  void Say(const std::string& reason) {
    EndStage();
    Note("{}\n", reason);
  }
  void EndStage() {
    if (bar_ != nullptr) bar_->Finish();
    bar_.reset();
    stage_.clear();
  }
  /// What a model says comes next: from now on nothing is shown.
  void BeQuiet() {
    EndStage();
    is_quiet_ = true;
  }
  bool is_quiet() const { return is_quiet_; }

 private:
  std::unique_ptr<Progress> bar_;
  std::string stage_;
  bool is_quiet_ = false;
};

void ShowNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) Note("note: {}\n", note);
}

/// What was verified while it was downloaded need not be read again to be hashed.
void RememberHashes(const ResolvedModel& resolved, const bundle::HashMemo& memo) {
  for (const ResolvedModel::Verified& file : resolved.verified)
    if (const auto mapping = MappedFile::Open(file.path); mapping.has_value())
      memo.RememberFinal(file.path, (*mapping)->identity(), file.sha256);
}

Result<compiler::CompileReport> UseBundle(const std::string& folder, const LoadOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const bundle::Manifest manifest, bundle::LoadManifest(folder));
  TESSERA_RETURN_IF_ERROR(CheckAgainstBundle(manifest, options.compile, options.given));
  if (!options.emit_dataset.empty())
    return Fail(FailedPrecondition(fmt::format(
        "--emit-dataset needs the weights as the repository has them, and {} is a bundle: name {} "
        "instead",
        folder,
        manifest.source.repository.empty() ? "the repository" : manifest.source.repository)));
  if (options.use_hf && !manifest.options.contains("use_hf"))
    return Fail(FailedPrecondition(
        fmt::format("--use-hf is said of a dataset, and {} is a bundle", folder)));
  if (options.compile.redo != compiler::CompileOptions::Redo::kNothing)
    return Fail(FailedPrecondition(fmt::format(
        "--ensure-export and --ensure-compile make a bundle again from its repository, and {} is a "
        "bundle: name {} instead",
        folder,
        manifest.source.repository.empty() ? "the repository" : manifest.source.repository)));
  compiler::CompileReport report;
  report.bundle = folder;
  report.reused = true;
  return report;
}

}  // namespace

void AddEnsureOptions(CLI::App* verb, compiler::CompileOptions* options) {
  using Redo = compiler::CompileOptions::Redo;
  verb->add_flag_callback(
      "--ensure-compile", [options] { options->redo = std::max(options->redo, Redo::kCompile); },
      "Make program and documents of the bundle again, although the cache has them");
  verb->add_flag_callback(
      "--ensure-export", [options] { options->redo = Redo::kExport; },
      "Pack the parameters again, too");
}

void AddDeviceOption(CLI::App* verb) {
  verb->add_option_function<std::string>(
          "--device", [](const std::string&) {}, "What the program runs on: cpu")
      ->check(CLI::Validator(
          [](const std::string& device) -> std::string {
            if (device == "cpu") return {};
            return fmt::format(
                "\"{:.40}\" runs IREE programs, which are not built in; programs of the cpu target "
                "run on cpu",
                device);
          },
          "{cpu}"));
}

void AddLoadOptions(CLI::App* verb, LoadOptions* options) {
  verb->add_option("MODEL", options->model, kModelHelp)->required();
  AddCommonOptions(verb, options);
}

void AddServingOptions(CLI::App* verb, LoadOptions* options) {
  CLI::Option* model = verb->add_option("MODEL", options->model, kModelHelp);
  CLI::Option* path =
      verb->add_option("--model-path", options->model, "The same as MODEL")->excludes(model);
  verb->add_option("--bundle", options->bundle, "A bundle, instead of MODEL")
      ->excludes(model)
      ->excludes(path);
  AddCommonOptions(verb, options);
  AddPartsOptions(verb, &options->parts);
}

Status RequireModel(const LoadOptions& options) {
  const bool named = !options.model.empty() || !options.bundle.empty();
  if (options.parts.any()) return CheckParts(options.parts, named, options.given);
  if (named) return {};
  return InvalidArgument("MODEL (or --model-path, --bundle, or the parts of a model) is required");
}

namespace {

/// Chooses a quantisation where the machine is to decide.
Status ResolveQuantize(const compiler::CompileInput& input, compiler::CompileOptions* compile) {
  if (compile->quantize != compiler::kAutoQuantize) return {};
  TESSERA_ASSIGN_OR_RETURN(
      compiler::QuantiseChoice choice,
      compiler::ChooseQuantisation(*input.source, *compile, ReadTopology().memory_bytes));
  Note("quantize auto: {}, because {}\n", choice.quantize, choice.reason);
  compile->quantize = std::move(choice.quantize);
  return {};
}

Status OpenImportance(const LoadOptions& options, compiler::CompileOptions* compile) {
  if (options.imatrix.empty()) return {};
  if (compile->quantize == "none")
    return InvalidArgument("--imatrix weighs the errors of --quantize, which is none");
  TESSERA_ASSIGN_OR_RETURN(compile->importance, compiler::Importance::Open(options.imatrix));
  return {};
}

Result<model::ModelSource> OpenSource(const ResolvedModel& resolved, const LoadOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(model::ModelSource source, model::OpenModel(resolved.path));
  if (options.use_hf) TESSERA_RETURN_IF_ERROR(model::UseHfOrder(&source).WithContext("--use-hf"));
  return source;
}

/// What is refused before the long work.
Status CheckBefore(const model::ModelSource& source, const ResolvedModel& resolved,
                   const LoadOptions& options, const compiler::CompileOptions& compile) {
  PlannedWork work;
  work.model = options.model;
  work.repository = resolved.repository;
  work.revision = resolved.revision;
  work.runs_here = options.runs_here;
  work.certify = options.certify;
  TESSERA_ASSIGN_OR_RETURN(work.kv_type, KvTypeOf(options.kv_dtype));
  work.kv = options.kv;
  work.to_download = resolved.missing;
  work.downloads = resolved.downloads;
  TESSERA_ASSIGN_OR_RETURN(work.bundles, CacheFolder(options.cache_dir));
  return CheckWork(source, work, compile);
}

}  // namespace

Result<compiler::CompileReport> EnsureBundle(const LoadOptions& options,
                                             const CompiledFn& on_compiled,
                                             const RunnableFn& on_runnable) {
  if (!options.bundle.empty()) {
    TESSERA_RETURN_IF_ERROR(RequireBundle(options.bundle));
    return UseBundle(options.bundle, options);
  }
  compiler::CompileOptions compile = options.compile;
  TESSERA_RETURN_IF_ERROR(OpenImportance(options, &compile));
  EarlyTokenizer tokenizer(on_runnable ? EarlyTokenizer::Table::kLater
                                       : EarlyTokenizer::Table::kAtOnce);
  const auto inspect = [&](const ResolvedModel& headers) -> Status {
    TESSERA_ASSIGN_OR_RETURN(const model::ModelSource source, OpenSource(headers, options));
    TESSERA_RETURN_IF_ERROR(CheckBefore(source, headers, options, compile));
    tokenizer.Begin(source);
    return {};
  };
  TESSERA_ASSIGN_OR_RETURN(
      const ResolvedModel resolved,
      ResolveModel(options.model, options.hub, options.cache_dir, ModelNeed::kWeights, inspect));
  if (resolved.kind == ModelKind::kBundle) return UseBundle(resolved.path, options);
  TESSERA_ASSIGN_OR_RETURN(const std::filesystem::path cache, CacheFolder(options.cache_dir));
  RememberHashes(resolved, bundle::HashMemo(cache));
  TESSERA_ASSIGN_OR_RETURN(const model::ModelSource source, OpenSource(resolved, options));
  for (const std::string& warning : source.warnings) Note("warning: {}\n", warning);
  TESSERA_RETURN_IF_ERROR(CheckBefore(source, resolved, options, compile));
  compiler::CompileInput input;
  input.source = &source;
  input.name = resolved.name;
  input.repository = resolved.repository;
  input.revision = resolved.revision;
  input.licence = resolved.licence;
  if (const auto* json = std::get_if<model::JsonTokenizer>(&source.tokenizer))
    input.tokenizer_json = json->json;
  input.make_tokenizer = [&] { return tokenizer.Take(source); };
  input.tokenizer_version = kTokenizerFilesVersion;
  if (options.certify) input.certify = certify::Certify;
  input.no_certificate = "--no-certificate";
  const bundle::Store store(cache);
  TESSERA_RETURN_IF_ERROR(ResolveQuantize(input, &compile));
  CompileDisplay display;
  if (on_runnable)
    input.on_usable = [&](const compiler::UsableBundle& usable) {
      display.BeQuiet();
      ShowNotes(usable.notes);
      on_runnable(usable, tokenizer.tokenizer());
      tokenizer.BeginTable();
    };
  TESSERA_ASSIGN_OR_RETURN(compiler::CompileReport report,
                           compiler::Compile(
                               input, compile, store,
                               [&](const compiler::Progress& progress) { display.Show(progress); },
                               [&](const std::string& reason) { display.Say(reason); }));
  display.EndStage();
  if (!display.is_quiet()) ShowNotes(report.notes);
  if (!options.emit_dataset.empty()) {
    TESSERA_RETURN_IF_ERROR(
        WriteDataset(options.emit_dataset, input.name, source, options.compile.tensor_parallel,
                     [&](const compiler::Progress& progress) { display.Show(progress); }));
    display.EndStage();
  }
  if (on_compiled) TESSERA_RETURN_IF_ERROR(on_compiled(input, report));
  return report;
}

Result<kernels::KvType> KvTypeOf(std::string_view name) {
  if (name == "f16") return kernels::KvType::kF16;
  if (name == "int8") return kernels::KvType::kInt8;
  return Fail(InvalidArgument(fmt::format("--kv-dtype \"{}\": expected f16 or int8", name)));
}

namespace {

Result<runtime::LoadOptions> SessionOptions(const LoadOptions& options) {
  runtime::LoadOptions load;
  load.threads = options.threads;
  load.device_ids = options.device_ids;
  TESSERA_ASSIGN_OR_RETURN(load.isa, CapIsa(ReadIsa(), options.isa));
  load.kv = options.kv;
  TESSERA_ASSIGN_OR_RETURN(load.kv_type, KvTypeOf(options.kv_dtype));
  load.max_rows = options.max_rows;
  load.verify_parameters = options.verify;
  return load;
}

/// What stands for the contents of a file that nobody hashed: a changed file has another one.
Result<std::string> IdentityText(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::Open(path));
  const FileIdentity& id = mapping->identity();
  return fmt::format("{}:{}:{}:{}:{}", id.device, id.inode, id.bytes, id.modified_ns,
                     id.changed_ns);
}

Result<LoadedModel> LoadParts(const LoadOptions& options, const runtime::LoadOptions& load) {
  const ModelParts& parts = options.parts;
  TESSERA_ASSIGN_OR_RETURN(
      bundle::Bundle opened,
      bundle::OpenParts(
          {parts.program, parts.model_config, {parts.parameters.begin(), parts.parameters.end()}}));
  const int64_t ranks = opened.manifest.tensor_parallel;
  if (options.given("--tp") && options.compile.tensor_parallel != ranks)
    return Fail(FailedPrecondition(
        fmt::format("--tp {}, but {} and --parameters are made for tp{}; leave the flag out",
                    options.compile.tensor_parallel, parts.program, ranks)));
  LoadedModel loaded;
  loaded.name = ModelNameOf(std::filesystem::absolute(parts.program).parent_path());
  loaded.fingerprint = fmt::format("tessera-{}-{}", TESSERA_VERSION, opened.manifest.key);
  loaded.kv_model = fmt::format("tessera {} {}", TESSERA_VERSION, opened.manifest.key);
  for (const std::string& file : parts.parameters) {
    TESSERA_ASSIGN_OR_RETURN(const std::string identity, IdentityText(file));
    loaded.kv_model += " " + identity;
  }
  TESSERA_ASSIGN_OR_RETURN(loaded.session, runtime::LoadSession(std::move(opened), load));
  TESSERA_RETURN_IF_ERROR(ReadDocuments(options, DocumentsOfParts(parts), &loaded));
  return loaded;
}

Result<LoadedModel> LoadBundle(const LoadOptions& options, const runtime::LoadOptions& load,
                               const std::filesystem::path& folder) {
  LoadedModel loaded;
  loaded.bundle = folder;
  TESSERA_ASSIGN_OR_RETURN(const bundle::Manifest manifest, bundle::LoadManifest(folder));
  loaded.name = manifest.model;
  loaded.fingerprint = fmt::format("tessera-{}-{}", TESSERA_VERSION, manifest.key);
  loaded.kv_model = fmt::format("tessera {}", TESSERA_VERSION);
  for (const bundle::FileRecord& file : manifest.files)
    if (file.name == bundle::kProgramFile || file.name.ends_with(".irpa"))
      loaded.kv_model += fmt::format(" {} {}", file.name, file.sha256);
  TESSERA_ASSIGN_OR_RETURN(loaded.session, runtime::LoadSession(folder, load));
  TESSERA_RETURN_IF_ERROR(ReadDocuments(options, DocumentsOfBundle(folder), &loaded));
  return loaded;
}

/// The same of one that is not published yet.
Result<LoadedModel> LoadUsable(const LoadOptions& options, const runtime::LoadOptions& load,
                               const compiler::UsableBundle& usable,
                               const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  bundle::Parts parts{
      usable.folder / bundle::kProgramFile, usable.folder / bundle::kConfigFile, {}};
  for (const std::string& name : bundle::ArchiveNames(usable.manifest.tensor_parallel))
    parts.parameters.push_back(usable.folder / name);
  TESSERA_ASSIGN_OR_RETURN(bundle::Bundle opened, bundle::OpenParts(parts));
  opened.manifest = usable.manifest;
  LoadedModel loaded;
  loaded.bundle = usable.target;
  loaded.name = usable.manifest.model;
  loaded.fingerprint = fmt::format("tessera-{}-{}", TESSERA_VERSION, usable.manifest.key);
  // The key stands for the hashes, which are not known yet.
  loaded.kv_model = fmt::format("tessera {} {}", TESSERA_VERSION, usable.manifest.key);
  loaded.tokenizer = tokenizer;
  TESSERA_ASSIGN_OR_RETURN(loaded.session, runtime::LoadSession(std::move(opened), load));
  TESSERA_RETURN_IF_ERROR(ReadDocuments(options, DocumentsOfBundle(usable.folder), &loaded));
  return loaded;
}

/// Loads, and says so.
template <typename LoadFn>
Result<LoadedModel> LoadAndSay(const LoadFn& load) {
  const TimePoint begin = Clock::Real().Now();
  Result<LoadedModel> loaded = load();
  if (!loaded.has_value()) return loaded;
  Note("loaded {} in {}\n", loaded->bundle.string(),
       HumanDuration(Seconds(Clock::Real().Now() - begin)));
  return loaded;
}

/// The bundle, made if need be, and its model, as soon as one can run.
Result<LoadedModel> LoadEarly(const LoadOptions& options, const runtime::LoadOptions& load) {
  std::promise<Result<LoadedModel>> promise;
  std::future<Result<LoadedModel>> first = promise.get_future();
  const auto make = [options, load,
                     given = std::make_shared<decltype(promise)>(std::move(promise))]() -> Status {
    bool is_given = false;
    const auto give = [&](Result<LoadedModel> loaded) {
      given->set_value(std::move(loaded));
      is_given = true;
    };
    const auto report = EnsureBundle(
        options, {},
        [&](const compiler::UsableBundle& usable,
            const std::shared_ptr<const text::Tokenizer>& tokenizer) {
          give(LoadAndSay([&] { return LoadUsable(options, load, usable, tokenizer); }));
          Publication::GiveWay();
        });
    if (!is_given && report.has_value())
      give(LoadAndSay([&] { return LoadBundle(options, load, report->bundle); }));
    if (!is_given) give(Fail(report.error()));
    ReturnFreedMemory();
    return StatusOf(report);
  };
  TESSERA_ASSIGN_OR_RETURN(std::shared_ptr<Publication> publication, Publication::Begin(make));
  Result<LoadedModel> loaded = first.get();
  if (loaded.has_value()) loaded->publication = std::move(publication);
  return loaded;
}

}  // namespace

namespace {

Result<LoadedModel> LoadRank(const LoadOptions& options,
                             std::shared_ptr<runtime::Transport> group) {
  TESSERA_ASSIGN_OR_RETURN(runtime::LoadOptions load, SessionOptions(options));
  load.transport = std::move(group);
  if (options.parts.any()) return LoadParts(options, load);
  LoadOptions here = options;
  here.runs_here = true;
  if (options.may_publish_later && load.transport == nullptr && !options.verify)
    return LoadEarly(here, load);
  TESSERA_ASSIGN_OR_RETURN(const compiler::CompileReport report, EnsureBundle(here));
  Result<LoadedModel> loaded = LoadAndSay([&] { return LoadBundle(options, load, report.bundle); });
  ReturnFreedMemory();
  return loaded;
}

/// A process that is not rank 0 of its group has no server and no prompt: it does what rank 0 does,
/// and ends with it.
[[noreturn]] void FollowAndExit(LoadedModel loaded, std::shared_ptr<runtime::Transport> group) {
  const Status status = loaded.session->Follow();
  if (!status.ok()) group->Abort(status.ToString());
  loaded = {};
  group.reset();  // Takes leave of the others.
  std::exit(0);
}

}  // namespace

Result<LoadedModel> LoadModel(const LoadOptions& options) {
  const int processes = JobSize();
  if (processes == 1) return LoadRank(options, nullptr);
  TESSERA_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Transport> group,
                           runtime::OpenTransport(processes));
  // The others wait for this one.
  const auto end_all = [&](const std::string& why) {
    if (options.before_abort) options.before_abort(why);
    group->Abort(why);
  };
  if (options.given("--tp") && options.compile.tensor_parallel != processes)
    end_all(fmt::format("--tp {}, and {} processes were started; give both the same number",
                        options.compile.tensor_parallel, processes));
  Result<LoadedModel> loaded = LoadRank(options, group);
  if (!loaded.has_value()) end_all(loaded.error().ToString());
  if (group->rank() > 0) FollowAndExit(*std::move(loaded), std::move(group));
  return loaded;
}

}  // namespace tessera::cli
