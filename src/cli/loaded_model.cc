// SPDX-License-Identifier: Apache-2.0
#include "cli/loaded_model.h"

#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "cli/environment.h"
#include "cli/terminal.h"
#include "cli/text_source.h"

#include "base/file.h"
#include "bundle/bundle.h"
#include "model/generation_defaults.h"
#include "model/special_tokens.h"
#include "runtime/load.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kMaxDocumentBytes = 256u << 20;

/// "models/SmolLM2-135M-Instruct.Q4_1.gguf" -> "SmolLM2-135M-Instruct.Q4_1"; a folder's own name.
std::string ModelName(const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path);
  std::string name = whole.extension() == ".gguf" ? whole.stem() : whole.filename();
  return name.empty() ? "model" : name;
}

Status NoSuchModel(const std::string& model) {
  return NotFound(fmt::format(
      "{} is not there: expected a folder with config.json, tokenizer.json and safetensors, a "
      ".gguf "
      "file, or a bundle. Models are not fetched by repository name yet: download the files first",
      model));
}

/// The text of a bundle's file, or nothing when it has none.
Result<std::optional<std::string>> ReadDocument(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  TESSERA_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxDocumentBytes));
  return std::optional<std::string>(std::move(text));
}

Result<json::Value> ReadJsonDocument(const std::filesystem::path& path) {
  TESSERA_ASSIGN_OR_RETURN(const auto text, ReadDocument(path));
  if (!text.has_value()) return json::Value(json::Object());
  TESSERA_ASSIGN_OR_RETURN(json::Value value,
                           json::Parse(*text, {.unique_keys = false}, path.string()));
  if (!value.is_object())
    return Fail(InvalidArgument(fmt::format("{}: expected a JSON object", path.string())));
  return value;
}

/// Everything but the session, from the bundle's documents.
Status ReadDocuments(const LoadOptions& options, LoadedModel* loaded) {
  const std::filesystem::path tokenizer_path = loaded->bundle / bundle::kTokenizerFile;
  TESSERA_ASSIGN_OR_RETURN(const std::string tokenizer_json,
                           ReadFile(tokenizer_path, kMaxDocumentBytes));
  auto tokenizer = text::Tokenizer::FromJson(tokenizer_json);
  if (!tokenizer.has_value()) return tokenizer.error().WithContext(tokenizer_path.string());
  loaded->tokenizer = *std::move(tokenizer);

  TESSERA_ASSIGN_OR_RETURN(const json::Value tokenizer_config,
                           ReadJsonDocument(loaded->bundle / bundle::kTokenizerConfigFile));
  TESSERA_ASSIGN_OR_RETURN(const json::Value generation,
                           ReadJsonDocument(loaded->bundle / bundle::kGenerationConfigFile));
  const model::RepositoryJson files{.generation = &generation.get_object(),
                                    .tokenizer_config = &tokenizer_config.get_object(),
                                    .tokenizer_json = &tokenizer_json};
  TESSERA_ASSIGN_OR_RETURN(const model::SpecialTokens special,
                           model::ReadHfSpecialTokens(files, loaded->session->shape().vocab_size));
  for (const int64_t id : special.eos_ids)
    loaded->eos_ids.push_back(static_cast<text::TokenId>(id));
  loaded->template_vars["bos_token"] = special.bos_text;
  loaded->template_vars["eos_token"] = special.eos_text;
  std::vector<std::string> warnings;
  TESSERA_ASSIGN_OR_RETURN(const model::GenerationDefaults defaults,
                           model::ReadHfGeneration(generation.get_object(), warnings));
  loaded->sampling = {.temperature = defaults.temperature,
                      .top_p = defaults.top_p,
                      .top_k = defaults.top_k,
                      .min_p = defaults.min_p,
                      .repetition_penalty = defaults.repetition_penalty};
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);

  std::filesystem::path template_path = options.chat_template;
  if (template_path.empty()) template_path = loaded->bundle / bundle::kChatTemplateFile;
  if (options.chat_template.empty() && !std::filesystem::exists(template_path)) return {};
  TESSERA_ASSIGN_OR_RETURN(const std::string source, ReadFile(template_path, kMaxDocumentBytes));
  auto chat_template = text::ChatTemplate::Parse(source);
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

}  // namespace

void AddLoadOptions(CLI::App* verb, LoadOptions* options) {
  verb->add_option("MODEL", options->model, "A folder, a GGUF file or a bundle")->required();
  verb->add_option("--cache-dir", options->cache_dir,
                   "Where bundles are kept (else $TESSERA_CACHE, $XDG_CACHE_HOME/tessera, "
                   "~/.cache/tessera)");
  verb->add_option("--max-seq-len", options->compile.max_seq_len,
                   "Longest sequence in tokens (0 = the model's own)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--threads", options->threads, "Threads (0 = one per physical core)")
      ->check(CLI::Range(0, 1024));
  verb->add_option("--kv-tokens", options->kv_tokens,
                   "KV memory in tokens over all sequences (0 = one longest sequence)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--chat-template", options->chat_template,
                   "A Jinja file instead of the model's own chat template");
  verb->add_flag("--verify", options->verify, "Check the hash of the parameters before loading");
}

Result<compiler::CompileReport> EnsureBundle(const LoadOptions& options) {
  if (!std::filesystem::exists(options.model)) return Fail(NoSuchModel(options.model));
  if (bundle::IsBundle(options.model)) {
    compiler::CompileReport report;
    report.bundle = options.model;
    report.reused = true;
    return report;
  }
  TESSERA_ASSIGN_OR_RETURN(const model::ModelSource source, model::OpenModel(options.model));
  for (const std::string& warning : source.warnings) fmt::print(stderr, "warning: {}\n", warning);
  compiler::CompileInput input;
  input.source = &source;
  input.name = ModelName(options.model);
  input.repository = options.model;
  if (const auto* json = std::get_if<model::JsonTokenizer>(&source.tokenizer)) {
    input.tokenizer_json = json->json;
  } else {
    TESSERA_ASSIGN_OR_RETURN(const auto tokenizer, MakeTokenizer(source.tokenizer));
    input.tokenizer_json = tokenizer->ToJson();
  }
  const bundle::Store store(CacheFolder(options.cache_dir));
  std::unique_ptr<Progress> bar;
  std::string stage;
  const auto show = [&](const compiler::Progress& progress) {
    if (progress.stage != stage) {
      if (bar != nullptr) bar->Finish();
      stage = progress.stage;
      bar = std::make_unique<Progress>(stage);
    }
    bar->Update(progress.done, progress.total);
  };
  TESSERA_ASSIGN_OR_RETURN(compiler::CompileReport report,
                           compiler::Compile(input, options.compile, store, show));
  if (bar != nullptr && !report.reused) bar->Finish();
  bar.reset();
  for (const std::string& reason : report.reasons) fmt::print(stderr, "{}\n", reason);
  for (const std::string& note : report.notes) fmt::print(stderr, "note: {}\n", note);
  return report;
}

Result<LoadedModel> LoadModel(const LoadOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const compiler::CompileReport report, EnsureBundle(options));
  const TimePoint begin = Clock::Real().Now();
  LoadedModel loaded;
  loaded.bundle = report.bundle;
  TESSERA_ASSIGN_OR_RETURN(const std::string manifest_text,
                           ReadFile(loaded.bundle / bundle::kManifestFile, kMaxDocumentBytes));
  TESSERA_ASSIGN_OR_RETURN(const bundle::Manifest manifest,
                           bundle::ReadManifest(manifest_text, bundle::kManifestFile));
  loaded.name = manifest.model;
  loaded.fingerprint = fmt::format("tessera-{}-{}", TESSERA_VERSION, manifest.key);
  runtime::LoadOptions load;
  load.threads = options.threads;
  load.kv_tokens = options.kv_tokens;
  load.max_rows = options.max_rows;
  load.verify_parameters = options.verify;
  TESSERA_ASSIGN_OR_RETURN(loaded.session, runtime::LoadSession(loaded.bundle, load));
  TESSERA_RETURN_IF_ERROR(ReadDocuments(options, &loaded));
  ReturnFreedMemory();
  fmt::print(stderr, "loaded {} in {}\n", loaded.bundle.string(),
             HumanDuration(Seconds(Clock::Real().Now() - begin)));
  return loaded;
}

}  // namespace tessera::cli
