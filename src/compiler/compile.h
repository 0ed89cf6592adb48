// SPDX-License-Identifier: Apache-2.0
//
// Compile: from an opened repository to a published bundle. The one entry to the compile plane;
// pipeline.h lists what happens inside. Two stages: *export* packs the parameters and makes the
// tokenizer, *compile* makes the program and the documents. A bundle of the same parameters gives
// them to the next one, so a changed option redoes only what depends on it. May be called from any
// thread; two callers of one key, in whatever processes, wait for each other. Reads weights once,
// streaming: memory stays under a gigabyte whatever the size of the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bundle/store.h"
#include "model/open.h"

namespace tessera::compiler {

class Importance;  // importance.h

/// Of batch_sizes.
inline constexpr int64_t kMaxBatchSize = int64_t{1} << 20;

/// The longest sequence to compile or plan for: `wanted`, or the model's `own` for 0.
/// kInvalidArgument with both when it is more than that: positions beyond are untrained.
Result<int64_t> ContextLength(int64_t wanted, int64_t own);

struct Progress;
using ProgressFn = std::function<void(const Progress&)>;

/// What a certificate is made from: a bundle that is complete but for its manifest, and the way to
/// the program of the source's own weights.
struct CertifyRequest {
  std::filesystem::path folder;  // program.json, config.json, the parameters, the tokenizer.
  int64_t parameters = 0;        // Elements of all weights.
  uint64_t original_bytes = 0;   // Of the parameters that `write_original` writes.
  std::filesystem::path original_folder;  // Absent, on the disk of `folder`; removed by Compile().
  /// Makes it with program.json, config.json and model.irpa of the original.
  std::function<Status()> write_original;
  const ProgressFn& progress;  // May be empty.
};
/// Fills all of a Parity but its hashes. An error fails the compilation: what cannot be measured is
/// Parity::Kind::kAbsent with the reason.
using CertifyFn = std::function<Result<bundle::Parity>(const CertifyRequest&)>;

/// What a bundle stores of a tokenizer.
struct TokenizerFiles {
  std::string json;   // tokenizer.json
  std::string table;  // Its stored form, for a fast start; empty: none.
  std::string note;   // Why there is no table.
  /// Fills `table` or `note`. Called after CompileInput::on_usable; empty: they are as they are.
  std::function<void(TokenizerFiles*)> make_table;
};

/// A bundle that can run and is not published yet.
struct UsableBundle {
  /// Has program, config, parameters and texts. It gets its name, or goes, after the call: who uses
  /// the files opens them before that.
  std::filesystem::path folder;
  std::filesystem::path target;           // The name that it will get.
  const bundle::Manifest& manifest;       // Without files.
  const std::vector<std::string>& notes;  // CompileReport::notes so far.
};
using UsableFn = std::function<void(const UsableBundle&)>;

/// Everything that enters a bundle besides options. Texts are stored as they are.
struct CompileInput {
  const model::ModelSource* source = nullptr;
  std::string name;        // Of the model: "SmolLM2-135M-Instruct".
  std::string repository;  // "org/name" or the path that the user named; may be empty.
  std::string revision;    // Commit hash; may be empty.
  std::string licence;     // As the repository states it; may be empty.
  /// The repository's tokenizer.json; empty when `make_tokenizer` makes it from the source's files.
  std::string tokenizer_json;
  /// Called when a bundle is made, not when one is reused: making a tokenizer takes long. Empty:
  /// the bundle gets `tokenizer_json` alone.
  std::function<Result<TokenizerFiles>()> make_tokenizer;
  /// Changes when `make_tokenizer` makes something else of the same sources; enters the key.
  std::string tokenizer_version;
  /// Empty: the repository's file, or one made from the source's special tokens and defaults.
  std::string tokenizer_config_json;
  std::string generation_config_json;
  /// Empty: the source's default template; if there is none, the bundle has none.
  std::string chat_template;
  /// Called where weights were rounded, before the bundle is published. Empty: the certificate is
  /// absent, because `no_certificate` says so.
  CertifyFn certify;
  std::string no_certificate = "the caller measures nothing";
  /// Called when new parameters are packed, measured and can be read; hashing them, the tokenizer's
  /// table and the disk follow, and then the bundle is published. Not called for a bundle or
  /// parameters that are reused: nothing that takes long follows. May be empty.
  UsableFn on_usable;
};

struct CompileOptions {
  std::string target = "cpu";   // Also x86-64-v3 and x86-64-v4: the same program and layout.
  int64_t tensor_parallel = 1;  // Ranks: bundle/shard.h says how many a model divides into.
  bool allow_uneven = false;    // Heads that do not divide are dealt unevenly.
  /// "none" keeps the formats of the source; others encode float matrices (weight_format.h).
  std::string quantize = "none";
  /// Weighs the errors of quantising; null: all inputs of a matrix count alike.
  std::shared_ptr<const Importance> importance;
  int64_t max_seq_len = 0;         // 0: the model's own context length.
  int64_t page_tokens = 32;        // Positions of a KV page: block_seq_stride.
  int64_t device_block_count = 0;  // Of config.json; 0: one sequence of max_seq_len.
  std::vector<int64_t> prefill_batch_sizes = {1, 4};
  std::vector<int64_t> decode_batch_sizes = {1, 4, 8};
  /// Optional passes to leave out (pipeline.h), for finding faults: the tokens stay the same.
  std::vector<std::string> disabled_passes;
  /// Stages to run although the cache has their result: the first of them and all that follow.
  enum class Redo : uint8_t { kNothing, kCompile, kExport } redo = Redo::kNothing;
};

struct Progress {
  std::string_view stage;  // "hashing sources", "packing parameters", ...; begins with done = 0.
  uint64_t done = 0;       // Bytes.
  uint64_t total = 0;      // 0: unknown.
};
/// Gets each of CompileReport::reasons when it is known: before the stage that it explains.
using ReasonFn = std::function<void(const std::string&)>;

struct CompileReport {
  std::filesystem::path bundle;
  std::string quantize;  // CompileOptions::quantize.
  bool reused = false;
  /// What was reused, or why each stage ran: "stage export: reusing the parameters of DIR", "stage
  /// compile: max_seq_len changed 4096 -> 8192".
  std::vector<std::string> reasons;
  /// What a user should know about the result: formats converted, defaults taken.
  std::vector<std::string> notes;
  struct PassTime {
    std::string name;
    double seconds = 0;
  };
  std::vector<PassTime> passes;  // Empty when reused.
  struct StageTime {
    std::string name;
    uint64_t bytes = 0;  // 0: not counted in bytes.
    double seconds = 0;
  };
  std::vector<StageTime> stages;  // Those that ran.
  uint64_t parameter_bytes = 0;
};

/// kUnimplemented names what the target cannot do (a target, an option, an operation, a weight
/// format), kInvalidArgument an option out of range, kResourceExhausted a full disk; see Store for
/// the rest. Nothing is left behind on an error. `progress` and `on_reason` may be empty; they are
/// called from the calling thread, `progress` at most once every few megabytes.
Result<CompileReport> Compile(const CompileInput& input, const CompileOptions& options,
                              const bundle::Store& store, const ProgressFn& progress = {},
                              const ReasonFn& on_reason = {});

/// kUnimplemented or kInvalidArgument for what no model can be compiled with: an unknown target,
/// format or pass, a size out of range.
Status CheckOptions(const CompileOptions& options);

/// The id under which Compile() would publish: hashes the sources, or remembers their hashes from
/// the store's cache (bundle/hash_memo.h).
Result<bundle::BundleId> MakeBundleId(const CompileInput& input, const CompileOptions& options,
                                      const bundle::Store& store, const ProgressFn& progress = {});

}  // namespace tessera::compiler
