// SPDX-License-Identifier: Apache-2.0
//
// From the MODEL argument to something that runs: compiles into the cache if no bundle fits, loads
// the bundle, makes tokenizer and chat template. Progress and "which bundle, why" go to stderr.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bundle_options.h"
#include "cli/hub_options.h"
#include "cli/model_parts.h"
#include "cli/publication.h"

#include "base/json.h"
#include "base/status.h"
#include "compiler/compile.h"
#include "engine/sampling_defaults.h"
#include "kernels/attention.h"
#include "runtime/kv_budget.h"
#include "runtime/session.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace CLI {
class App;
}

namespace tessera::cli {

struct LoadOptions {
  std::string model;  // As for ResolveModel.
  HubOptions hub;
  std::string bundle;         // The same as `model`, but must be a bundle.
  ModelParts parts;           // Precompiled; two of the three are empty.
  std::string cache_dir;      // Empty: CacheFolder().
  std::string emit_dataset;   // Also write the model as a dataset here (emit_dataset.h).
  std::string chat_template;  // File that replaces the model's own template; empty: none.
  compiler::CompileOptions compile;
  FlagGiven given;                 // Of the verb's flags; empty: none was.
  int threads = 0;                 // 0: one per physical core.
  std::vector<int> device_ids;     // As runtime::LoadOptions.
  std::string isa = "auto";        // As CapIsa.
  runtime::KvWish kv;              // By default one full sequence.
  std::string kv_dtype = "f16";    // As KvTypeOf.
  int64_t max_rows = 512;          // Tokens of one step.
  std::string imatrix;             // File that weighs errors of quantising; empty: none.
  bool use_hf = false;             // model::UseHfOrder.
  bool certify = true;             // Measure parity where weights were rounded.
  bool verify = false;             // Check the hash of the parameters, too.
  bool runs_here = false;          // Refuse, before compiling, what this machine cannot hold.
  bool may_publish_later = false;  // LoadedModel::publication: the caller waits for it.
  /// Hears why this rank is about to end its whole group; null: nobody does.
  std::function<void(std::string_view)> before_abort{};
};

/// Declares the positional MODEL, --cache-dir, --max-seq-len, --threads, --kv-memory and the rest
/// that every verb shares which runs a model.
void AddLoadOptions(CLI::App* verb, LoadOptions* options);
/// The same, with all the ways to name a model: MODEL, --model-path, --bundle, or its parts. The
/// verb calls RequireModel before it runs.
void AddServingOptions(CLI::App* verb, LoadOptions* options);
/// kInvalidArgument (wrong usage) when the model is named in no way or in two.
Status RequireModel(const LoadOptions& options);

/// --ensure-export and --ensure-compile.
void AddEnsureOptions(CLI::App* verb, compiler::CompileOptions* options);
/// --device, of which there is one.
void AddDeviceOption(CLI::App* verb);

/// "f16" or "int8"; kInvalidArgument with both names otherwise.
Result<kernels::KvType> KvTypeOf(std::string_view name);

struct LoadedModel {
  std::filesystem::path bundle;  // Empty: loaded from parts.
  std::string name;              // "SmolLM2-135M-Instruct": what the server calls it by default.
  std::unique_ptr<runtime::Session> session;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<const text::ChatTemplate> chat_template;  // Null: the model has none.
  std::vector<text::TokenId> eos_ids;
  json::Object template_vars;         // bos_token, eos_token
  engine::SamplingDefaults sampling;  // What the model recommends.
  std::string fingerprint;            // Bundle key and build, for system_fingerprint.
  std::string kv_model;               // What computes KV: version, program and parameters by hash.
  /// Null: the bundle is there. Otherwise the model runs from files that nobody else sees yet, and
  /// an error means that they cannot be relied on: the caller stops using them.
  std::shared_ptr<Publication> publication;
};

Result<LoadedModel> LoadModel(const LoadOptions& options);

/// Called when a bundle has been found or made of a repository, which is still open.
using CompiledFn =
    std::function<Status(const compiler::CompileInput&, const compiler::CompileReport&)>;

/// compiler::UsableFn, with the tokenizer that the bundle's table is being made of.
using RunnableFn = std::function<void(const compiler::UsableBundle&,
                                      const std::shared_ptr<const text::Tokenizer>&)>;

/// Only the bundle, compiled if need be: for `compile`, and the first half of LoadModel. Prints
/// what was reused, or why a stage runs before it does. A flag that the named bundle contradicts is
/// an error. After a call of `on_runnable` nothing is printed any more.
Result<compiler::CompileReport> EnsureBundle(const LoadOptions& options,
                                             const CompiledFn& on_compiled = {},
                                             const RunnableFn& on_runnable = {});

}  // namespace tessera::cli
