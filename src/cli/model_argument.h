// SPDX-License-Identifier: Apache-2.0
//
// What the MODEL argument of a verb names, and where it lies on disk: a name is downloaded first.
// Every verb asks here, so that the same words mean the same and an absent model gets the same
// answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/hub_options.h"

#include "base/status.h"

namespace tessera::cli {

/// Of the argument, in every verb's help.
inline constexpr const char* kModelHelp =
    "A repository (org/repo[@revision][:QUANT]), a folder, a GGUF file or a bundle";

enum class ModelKind : uint8_t {
  kBundle,
  kSource,  // A folder or file that model::OpenModel or formats::Open takes.
};

/// What a verb reads of the model.
enum class ModelNeed : uint8_t {
  kWeights,
  kHeaders,  // Configuration, tokenizer and the headers of weights; see hub::Hub::PullHeaders.
};

struct ResolvedModel {
  ModelKind kind = ModelKind::kSource;
  std::string path;
  std::string name;        // "SmolLM2-135M-Instruct".
  std::string repository;  // "org/repo", an address, or the path as it was written.
  std::string revision;    // Commit; empty where there is none.
  std::string licence;
  /// Files whose SHA-256 was just compared, so that nobody has to do it again.
  struct Verified {
    std::string path;
    std::string sha256;
  };
  std::vector<Verified> verified;
  uint64_t fetched = 0;  // Bytes that were downloaded for this call.
  /// Bytes that are still to be downloaded, and where to; for InspectFn only.
  uint64_t missing = 0;
  std::filesystem::path downloads;
};

/// Gets the headers of a named model before its weights are downloaded (hub::InspectFn); an error
/// ends the call.
using InspectFn = std::function<Status(const ResolvedModel& headers)>;

/// What is on disk is taken as it is; a name (hub/repository_name.h) is resolved, and what the
/// cache lacks is downloaded, with progress on stderr. `cache_dir` as for CacheFolder. kNotFound,
/// with what MODEL may be, when it is neither; errors of hub::Hub.
Result<ResolvedModel> ResolveModel(const std::string& model, const HubOptions& hub,
                                   const std::string& cache_dir,
                                   ModelNeed need = ModelNeed::kWeights,
                                   const InspectFn& inspect = {});

/// "models/SmolLM2-135M-Instruct.Q4_1.gguf" -> "SmolLM2-135M-Instruct.Q4_1"; a folder's own name.
std::string ModelNameOf(const std::filesystem::path& path);

/// kNotFound when the folder that --bundle names is absent or no bundle.
Status RequireBundle(const std::string& folder);

}  // namespace tessera::cli
