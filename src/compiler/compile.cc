// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "bundle/bundle.h"
#include "bundle/hash_memo.h"
#include "bundle/limits.h"
#include "bundle/program_verify.h"
#include "compiler/certificate.h"
#include "compiler/documents.h"
#include "compiler/importance.h"
#include "compiler/module.h"
#include "compiler/passes/passes.h"
#include "compiler/pipeline.h"
#include "compiler/targets/cpu/archive.h"
#include "compiler/targets/cpu/shards.h"
#include "compiler/weight_format.h"
#include "formats/open.h"

namespace tessera::compiler {
namespace {

using bundle::BundleId;
using bundle::FileRecord;

/// Raised when the same --quantize makes other bytes of the same weights: bundles are made anew.
constexpr std::string_view kQuantiserVersion = "2";

constexpr std::string_view kCpuTargets[] = {"cpu", "x86-64-v3", "x86-64-v4"};

Status CheckBatchSizes(std::string_view name, const std::vector<int64_t>& sizes) {
  const bool ascending =
      std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) == sizes.end();
  if (!sizes.empty() && ascending && sizes.front() >= 1 && sizes.back() <= kMaxBatchSize) return {};
  return InvalidArgument(fmt::format("{} [{}]: expected ascending numbers from 1 to {}, each once",
                                     name, fmt::join(sizes, ", "), kMaxBatchSize));
}

}  // namespace

Status CheckOptions(const CompileOptions& options) {
  if (std::find(std::begin(kCpuTargets), std::end(kCpuTargets), options.target) ==
      std::end(kCpuTargets))
    return Unimplemented(fmt::format("target \"{:.40}\" is not built in; expected {}",
                                     options.target, fmt::join(kCpuTargets, ", ")));
  if (options.tensor_parallel < 1 || options.tensor_parallel > bundle::kMaxRanks)
    return InvalidArgument(
        fmt::format("tp{}: expected tp1 to tp{}", options.tensor_parallel, bundle::kMaxRanks));
  TESSERA_RETURN_IF_ERROR(CheckQuantize(options.quantize));
  if (options.page_tokens < 16 || options.page_tokens % 16 != 0 ||
      options.page_tokens > bundle::kMaxPageTokens)
    return InvalidArgument(fmt::format("{} tokens a page, expected a multiple of 16 up to {}",
                                       options.page_tokens, bundle::kMaxPageTokens));
  if (options.device_block_count < 0 || options.device_block_count > bundle::kMaxDeviceBlocks)
    return InvalidArgument(fmt::format("device_block_count {}, expected 0 to {}",
                                       options.device_block_count, bundle::kMaxDeviceBlocks));
  TESSERA_RETURN_IF_ERROR(CheckBatchSizes("prefill batch sizes", options.prefill_batch_sizes));
  TESSERA_RETURN_IF_ERROR(CheckBatchSizes("decode batch sizes", options.decode_batch_sizes));
  return CheckDisabledPasses(options.disabled_passes);
}

namespace {

Status CheckInput(const CompileInput& input) {
  if (input.name.empty()) return InvalidArgument("the model has no name");
  if (input.tokenizer_json.empty() && !input.make_tokenizer)
    return InvalidArgument("the model has no tokenizer.json");
  return {};
}

Result<int64_t> MaxSeqLen(const CompileInput& input, const CompileOptions& options) {
  return ContextLength(options.max_seq_len,
                       std::min(input.source->config.context_length, bundle::kMaxContext));
}

struct Sources {
  std::vector<FileRecord> of_export;   // Parameters, config.json, tokenizer.
  std::vector<FileRecord> of_program;  // Texts that a bundle stores and the parameters do not need.
};

/// Of the repository's own files.
bool IsOfProgram(std::string_view name) {
  return name == bundle::kTokenizerConfigFile || name == bundle::kGenerationConfigFile ||
         name == bundle::kChatTemplateFile;
}

/// Of all its bytes, of which few are mapped at a time, whatever its size.
Result<std::string> HashMapped(const MappedFile& file,
                               const std::function<void(uint64_t bytes)>& on_piece) {
  constexpr uint64_t kPiece = 2 << 20;
  constexpr uint64_t kAhead = 16 << 20;
  const uint64_t bytes = file.bytes().size();
  Sha256 hash;
  for (uint64_t at = 0; at < bytes; at += kPiece) {
    // The disk reads while this much is hashed.
    if (at % kAhead == 0) file.WillNeed(at + kAhead, kAhead);
    const uint64_t size = std::min(kPiece, bytes - at);
    hash.Update(file.bytes().subspan(at, size));
    file.DoneWith(at, size);
    if (on_piece) on_piece(size);
  }
  TESSERA_RETURN_IF_ERROR(file.CheckIntact());
  return hash.FinishHex();
}

Result<std::vector<FileRecord>> HashParameterFiles(const CompileInput& input,
                                                   const bundle::HashMemo& memo,
                                                   const ProgressFn& progress) {
  std::vector<FileRecord> records;
  uint64_t total = 0;
  uint64_t done = 0;
  for (const formats::SourceFile& file : input.source->index.files())
    total += file.mapping->bytes().size();
  for (const formats::SourceFile& file : input.source->index.files()) {
    const std::string name = EscapeNonUtf8(file.path.filename().string());
    const uint64_t bytes = file.mapping->bytes().size();
    if (auto known = memo.Find(file.path, file.mapping->identity())) {
      records.push_back({name, bytes, *std::move(known)});
      done += bytes;
      continue;
    }
    if (progress) progress({"hashing sources", done, total});
    TESSERA_ASSIGN_OR_RETURN(std::string hash, HashMapped(*file.mapping, [&](uint64_t size) {
                               done += size;
                               if (progress) progress({"hashing sources", done, total});
                             }));
    records.push_back({name, bytes, std::move(hash)});
    memo.Remember(file.path, file.mapping->identity(), records.back().sha256);
  }
  return records;
}

/// Every file that decides the output: parameters, and the texts that a bundle stores.
Result<Sources> HashSources(const CompileInput& input, const bundle::HashMemo& memo,
                            const ProgressFn& progress) {
  Sources sources;
  TESSERA_ASSIGN_OR_RETURN(sources.of_export, HashParameterFiles(input, memo, progress));
  const auto record = [](const std::string& name, const std::string& text) {
    return FileRecord{name, text.size(), Sha256Hex(AsBytes(text))};
  };
  for (const model::RepositoryFile& file : input.source->files)
    (IsOfProgram(file.name) ? sources.of_program : sources.of_export)
        .push_back(record(file.name, file.text));
  if (!input.tokenizer_json.empty())
    sources.of_export.push_back(
        record(fmt::format("bundle/{}", bundle::kTokenizerFile), input.tokenizer_json));
  for (const model::RepositoryFile& file : MakeDocuments(input))
    sources.of_program.push_back(record("bundle/" + file.name, file.text));
  return sources;
}

/// Passes progress on, and measures each stage from its first report to its last.
class StageClock {
 public:
  explicit StageClock(const ProgressFn& next) : next_(next) {}
  void Show(const Progress& progress) {
    const TimePoint now = Clock::Real().Now();
    if (stages_.empty() || stages_.back().name != progress.stage) {
      stages_.push_back({std::string(progress.stage), 0, 0});
      begin_ = now;
    }
    stages_.back().bytes = progress.done;
    stages_.back().seconds = Seconds(now - begin_);
    if (next_) next_(progress);
  }
  const std::vector<CompileReport::StageTime>& stages() const { return stages_; }

 private:
  const ProgressFn& next_;
  std::vector<CompileReport::StageTime> stages_;
  TimePoint begin_;
};

bundle::Manifest MakeManifest(const CompileInput& input, const BundleId& id, const Module& module) {
  bundle::Manifest manifest;
  manifest.tessera_version = TESSERA_VERSION;
  manifest.model = id.model;
  manifest.key = id.Key();
  manifest.export_key = id.ExportKey();
  manifest.target = "cpu";
  manifest.isa = "x86-64-v3";  // What layout p8 is made for; its reference runs anywhere.
  manifest.tensor_parallel = id.tensor_parallel;
  manifest.quantization = id.quantization;
  manifest.options = id.AllOptions();
  manifest.source = {input.repository, input.revision,
                     std::string(FormatName(input.source->index.files()[0].format)), input.licence,
                     id.AllSources()};
  const bundle::Dims& d = module.program.dims;
  manifest.page = {"[layer][kv_head][K: block of 16 positions][dim][16] [V: position][dim]", "F16",
                   d.page_tokens, module.plan.kv_bytes_per_token * d.page_tokens};
  manifest.plan = module.plan;
  return manifest;
}

using Redo = CompileOptions::Redo;

/// What the bundle will be made from: an older one of the same parameters, or nothing of the kind.
struct Reuse {
  std::optional<bundle::Store::Exported> exported;
  std::string of_export;   // Why the stage runs or does not,
  std::string of_compile;  // for each of the two.
};

/// `damage`: what is wrong with the bundle that is there; ok when none is.
Reuse FindReuse(const bundle::Store& store, const BundleId& id, Redo redo, const Status& damage) {
  Reuse reuse;
  if (redo != Redo::kExport) reuse.exported = store.FindExport(id);
  const std::optional<bundle::Manifest> sibling =
      reuse.exported ? reuse.exported->manifest : store.NewestSibling(id);
  std::string why;
  if (!damage.ok()) {
    why = damage.ToString();
  } else if (!sibling) {
    why = fmt::format("no bundle of {} yet", id.model);
  } else {
    why = bundle::ExplainDifference(
        *sibling, id, reuse.exported ? bundle::Stages::kAll : bundle::Stages::kExport);
    if (why.empty()) why = "bundle was removed";
  }
  if (reuse.exported) {
    reuse.of_export =
        fmt::format("stage export: reusing the parameters of {}", reuse.exported->folder.string());
    reuse.of_compile = fmt::format("stage compile: {}", redo == Redo::kCompile ? "asked for" : why);
    return reuse;
  }
  reuse.of_export = fmt::format("stage export: {}", redo == Redo::kExport ? "asked for" : why);
  reuse.of_compile = "stage compile: the parameters are new";
  return reuse;
}

Result<TokenizerFiles> MakeTokenizer(const CompileInput& input, const ProgressFn& progress) {
  if (!input.make_tokenizer)
    return TokenizerFiles{.json = input.tokenizer_json, .table = {}, .note = {}, .make_table = {}};
  if (progress) progress({"making the tokenizer", 0, 0});
  Result<TokenizerFiles> files = input.make_tokenizer();
  if (progress) progress({"making the tokenizer", 0, 0});
  return files;
}

/// The table of a tokenizer that has one.
Status AddTable(const TokenizerFiles& tokenizer, bundle::BundleDraft* draft,
                CompileReport* report) {
  if (!tokenizer.note.empty()) report->notes.push_back(tokenizer.note);
  if (tokenizer.table.empty()) return {};
  return draft->AddFile(bundle::kTokenizerTableFile, tokenizer.table);
}

/// Parameters that are read again soon enough to be still in memory: hashing them can wait.
constexpr uint64_t kHashedLaterBytes = 1 << 30;

/// Stage export. What may wait until a bundle is in use waits in here.
struct Export {
  std::vector<FileRecord> archives;  // Not recorded; hashes may be missing.
  TokenizerFiles tokenizer;
};

/// The packed parameters and the tokenizer.
Result<Export> MakeExport(const CompileInput& input, const Module& module, const BundleId& id,
                          bundle::BundleDraft* draft, const ProgressFn& progress,
                          CompileReport* report) {
  // First, before the long work: these may refuse the model.
  TESSERA_ASSIGN_OR_RETURN(std::vector<Archive> archives, ArchivesOf(module));
  uint64_t bytes = 0;
  for (Archive& archive : archives) {
    archive.identity = id.ExportKey();
    for (const bundle::Weight& weight : archive.weights)
      bytes += static_cast<uint64_t>(weight.bytes);
  }
  Export made;
  TESSERA_ASSIGN_OR_RETURN(made.tokenizer, MakeTokenizer(input, progress));
  const bool later = input.on_usable && bytes <= kHashedLaterBytes;
  TESSERA_ASSIGN_OR_RETURN(made.archives,
                           WriteCpuArchives(*module.index, archives, draft->folder(), progress,
                                            later ? Hashing::kNone : Hashing::kOnTheWay));
  for (const FileRecord& record : made.archives) report->parameter_bytes += record.bytes;
  TESSERA_RETURN_IF_ERROR(draft->AddFile(bundle::kTokenizerFile, made.tokenizer.json));
  if (!made.tokenizer.make_table) TESSERA_RETURN_IF_ERROR(AddTable(made.tokenizer, draft, report));
  return made;
}

/// The rest of it, which nobody who runs the bundle needs.
Status FinishExport(Export made, bundle::BundleDraft* draft, const ProgressFn& progress,
                    CompileReport* report) {
  constexpr std::string_view kSyncing = "syncing parameters";
  for (FileRecord& record : made.archives) {
    if (record.sha256.empty()) {
      TESSERA_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(draft->folder() / record.name));
      TESSERA_ASSIGN_OR_RETURN(record.sha256, HashMapped(*file, {}));
    }
    draft->Record(std::move(record));
  }
  if (progress) progress({kSyncing, 0, report->parameter_bytes});
  TESSERA_RETURN_IF_ERROR(draft->Sync());
  if (progress) progress({kSyncing, report->parameter_bytes, report->parameter_bytes});
  if (!made.tokenizer.make_table) return {};
  made.tokenizer.make_table(&made.tokenizer);
  return AddTable(made.tokenizer, draft, report);
}

bool IsOfExport(std::string_view name) {
  return name.ends_with(".irpa") || name == bundle::kTokenizerFile ||
         name == bundle::kTokenizerTableFile;
}

/// The same from an older bundle.
Status LinkExport(const bundle::Store::Exported& exported, const Module& module,
                  bundle::BundleDraft* draft, CompileReport* report) {
  for (const FileRecord& file : exported.manifest.files) {
    if (!IsOfExport(file.name)) continue;
    TESSERA_RETURN_IF_ERROR(draft->Link(exported.folder, file));
    if (file.name.ends_with(".irpa")) report->parameter_bytes += file.bytes;
  }
  return StatusOf(
             bundle::OpenArchives(module.program, draft->folder(), module.options.tensor_parallel))
      .WithContext(exported.folder.string());
}

Status MakeBundle(const CompileInput& input, const CompileOptions& options, const BundleId& id,
                  const bundle::Store& store, const bundle::BundleLock& lock, const Reuse& reuse,
                  const ProgressFn& progress, CompileReport* report) {
  TESSERA_ASSIGN_OR_RETURN(Module module, MakeModule(input, options));
  TESSERA_RETURN_IF_ERROR(RunPipeline(CpuPipeline(), &module, &report->passes));
  TESSERA_ASSIGN_OR_RETURN(bundle::BundleDraft draft, store.NewDraft(lock));
  Export exported;
  if (reuse.exported) {
    TESSERA_RETURN_IF_ERROR(LinkExport(*reuse.exported, module, &draft, report));
  } else {
    TESSERA_ASSIGN_OR_RETURN(exported, MakeExport(input, module, id, &draft, progress, report));
  }
  TESSERA_RETURN_IF_ERROR(
      draft.AddFile(bundle::kProgramFile, bundle::WriteProgram(module.program)));
  TESSERA_RETURN_IF_ERROR(
      draft.AddFile(bundle::kConfigFile, bundle::WriteServingConfig(MakeServingConfig(module))));
  for (const model::RepositoryFile& file : MakeDocuments(input))
    TESSERA_RETURN_IF_ERROR(draft.AddFile(file.name, file.text));
  TESSERA_RETURN_IF_ERROR(input.source->index.CheckIntact());
  bundle::Manifest manifest = MakeManifest(input, id, module);
  const bundle::Parity* known = reuse.exported && reuse.exported->manifest.parity
                                    ? &*reuse.exported->manifest.parity
                                    : nullptr;
  TESSERA_ASSIGN_OR_RETURN(manifest.parity, MakeParity(input, module, draft, known, progress));
  if (manifest.parity->kind != bundle::Parity::Kind::kExact)
    report->notes.push_back(bundle::Summary(*manifest.parity));
  report->notes.insert(report->notes.end(), module.notes.begin(), module.notes.end());
  if (!reuse.exported) {
    if (input.on_usable) input.on_usable({draft.folder(), draft.target(), manifest, report->notes});
    TESSERA_RETURN_IF_ERROR(FinishExport(std::move(exported), &draft, progress, report));
  }
  TESSERA_ASSIGN_OR_RETURN(report->bundle, std::move(draft).Publish(std::move(manifest)));
  return {};
}

}  // namespace

Result<int64_t> ContextLength(int64_t wanted, int64_t own) {
  if (wanted >= 0 && wanted <= own) return wanted > 0 ? wanted : own;
  return Fail(
      InvalidArgument(fmt::format("--max-seq-len {} is more than the model's {}", wanted, own)));
}

Result<BundleId> MakeBundleId(const CompileInput& input, const CompileOptions& options,
                              const bundle::Store& store, const ProgressFn& progress) {
  TESSERA_CHECK(input.source != nullptr);
  TESSERA_RETURN_IF_ERROR(CheckOptions(options));
  TESSERA_RETURN_IF_ERROR(CheckInput(input));
  TESSERA_ASSIGN_OR_RETURN(const int64_t max_seq_len, MaxSeqLen(input, options));
  BundleId id;
  id.model = input.name;
  // The packed layout is the same for all of kCpuTargets: one bundle serves them.
  id.target = "cpu";
  id.tensor_parallel = options.tensor_parallel;
  id.quantization = options.quantize == "none" ? "source" : options.quantize;
  id.program_options = {
      {"max_seq_len", fmt::to_string(max_seq_len)},
      {"page_tokens", fmt::to_string(options.page_tokens)},
      {"device_block_count", fmt::to_string(options.device_block_count)},
      {"prefill_batch_sizes", fmt::format("{}", fmt::join(options.prefill_batch_sizes, ","))},
      {"decode_batch_sizes", fmt::format("{}", fmt::join(options.decode_batch_sizes, ","))}};
  if (options.quantize != "none" && options.importance != nullptr)
    id.options["imatrix"] = options.importance->sha256().substr(0, 16);
  if (options.quantize != "none")
    id.options[std::string(bundle::kQuantiserOption)] = kQuantiserVersion;
  if (options.tensor_parallel > 1 && options.allow_uneven)
    id.options[std::string(bundle::kAllowUnevenOption)] = "true";
  if (input.source->use_hf_order) id.options["use_hf"] = "true";
  if (HasManySegments(input.source->config.attention.kv_heads)) id.options["segments"] = "2";
  if (!input.tokenizer_version.empty()) id.options["tokenizer"] = input.tokenizer_version;
  if (!options.disabled_passes.empty())  // Absent otherwise: ordinary keys do not know of it.
    id.options["disabled_passes"] = fmt::format("{}", fmt::join(options.disabled_passes, ","));
  TESSERA_ASSIGN_OR_RETURN(Sources sources,
                           HashSources(input, bundle::HashMemo(store.cache()), progress));
  id.sources = std::move(sources.of_export);
  id.program_sources = std::move(sources.of_program);
  return id;
}

Result<CompileReport> Compile(const CompileInput& input, const CompileOptions& options,
                              const bundle::Store& store, const ProgressFn& on_progress,
                              const ReasonFn& on_reason) {
  StageClock clock(on_progress);
  const ProgressFn progress = [&](const Progress& now) { clock.Show(now); };
  CompileReport report;
  report.notes = input.source->warnings;
  report.quantize = options.quantize;
  TESSERA_ASSIGN_OR_RETURN(const BundleId id, MakeBundleId(input, options, store, progress));
  const auto reason = [&](std::string text) {
    if (on_reason) on_reason(text);
    report.reasons.push_back(std::move(text));
  };
  const auto reuse = [&](const std::filesystem::path& folder) {
    report.bundle = folder;
    report.reused = true;
    report.stages = clock.stages();
    reason(fmt::format("reusing bundle {}: sources and options are the same", folder.string()));
    return report;
  };
  // A bundle appears whole or not at all, so looking needs no lock, nor a cache that we may write.
  const bool may_reuse = options.redo == Redo::kNothing;
  const auto present = store.Find(id);
  if (may_reuse && present.has_value() && present->has_value()) return reuse(**present);
  const auto on_wait = [&] { reason("waiting for another process that compiles the same bundle"); };
  TESSERA_ASSIGN_OR_RETURN(const bundle::BundleLock lock, store.Lock(id, on_wait));
  const auto found = store.Find(id);  // Again: the one we waited for may have made it.
  if (may_reuse && found.has_value() && found->has_value()) return reuse(**found);
  const Reuse older = FindReuse(store, id, options.redo, StatusOf(found));
  reason(older.of_export);
  reason(older.of_compile);
  TESSERA_RETURN_IF_ERROR(MakeBundle(input, options, id, store, lock, older, progress, &report)
                              .WithContext(fmt::format("compiling {}", input.name)));
  report.stages = clock.stages();
  return report;
}

}  // namespace tessera::compiler
