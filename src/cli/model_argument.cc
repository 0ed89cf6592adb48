// SPDX-License-Identifier: Apache-2.0
#include "cli/model_argument.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "cli/cached_bundles.h"
#include "cli/environment.h"
#include "cli/terminal.h"

#include "base/utf8.h"
#include "bundle/bundle.h"
#include "hub/hub.h"
#include "hub/nearest.h"

namespace tessera::cli {
namespace {

ResolvedModel OnDisk(const std::string& path) {
  ResolvedModel resolved;
  resolved.kind = bundle::IsBundle(path) ? ModelKind::kBundle : ModelKind::kSource;
  resolved.path = path;
  resolved.name = ModelNameOf(path);
  resolved.repository = EscapeNonUtf8(path);
  return resolved;
}

Status Absent(const std::string& model) {
  return NotFound(fmt::format(
      "{} is not there: expected a folder with config.json, tokenizer.json and safetensors, a "
      ".gguf file, a dataset (.irpa), a bundle, or the name of a repository (org/repo)",
      model));
}

/// The same, with the repository of the cache that may have been meant.
Status AbsentName(const std::string& model, const HubOptions& hub, const std::string& cache_dir) {
  const auto settings = HubSettings(hub, cache_dir);
  const auto nearest =
      settings.has_value() ? hub::NearestInCache(model, settings->cache) : std::nullopt;
  const Status absent = Absent(model);
  if (!nearest) return absent;
  return NotFound(
      fmt::format("{}; or is {} meant, which the cache has?", absent.message(), *nearest));
}

/// The folder of a bundle that is named as `cache ls` names it.
std::optional<std::string> CachedBundlePath(const std::string& model,
                                            const std::string& cache_dir) {
  const auto cache = CacheFolder(cache_dir);
  if (!cache.has_value() || !IsCachedBundleName(model)) return std::nullopt;
  const std::filesystem::path folder = *cache / "bundles" / model;
  if (!bundle::IsBundle(folder)) return std::nullopt;
  return folder.string();
}

/// A repository that cannot be had, and what the cache has that was made of it: after importing a
/// bundle the weights are not there, and not needed.
Status WithBundlesOf(const Status& error, const hub::RepositoryName& name,
                     const std::string& cache_dir) {
  const auto cache = CacheFolder(cache_dir);
  if (!cache.has_value() || name.repository.empty()) return error;
  std::vector<std::string> bundles;
  for (const CachedBundle& one : ScanBundles(*cache))
    if (one.manifest.has_value() && one.manifest->source.repository == name.repository)
      bundles.push_back(one.name);
  if (bundles.empty()) return error;
  return Status(error.code(), fmt::format("{}; or name a bundle that was made of it: {}",
                                          error.message(), fmt::join(bundles, ", ")));
}

ResolvedModel Resolved(const hub::LocalModel& local) {
  ResolvedModel resolved;
  resolved.path = local.path.string();
  resolved.name = local.path.extension() == ".gguf"
                      ? local.path.stem().string()
                      : local.repository.substr(local.repository.rfind('/') + 1);
  resolved.repository = local.repository;
  resolved.revision = local.revision;
  resolved.licence = local.licence;
  resolved.fetched = local.fetched;
  resolved.missing = local.missing;
  for (const hub::LocalModel::File& file : local.verified)
    if (!file.sha256.empty()) resolved.verified.push_back({file.path.string(), file.sha256});
  return resolved;
}

Result<ResolvedModel> Pull(const hub::RepositoryName& name, const HubOptions& options,
                           const std::string& cache_dir, ModelNeed need, const InspectFn& inspect) {
  TESSERA_ASSIGN_OR_RETURN(hub::Settings found, HubSettings(options, cache_dir));
  const hub::Hub hub(std::move(found));
  PullDisplay display(options);
  hub::InspectFn inspect_headers;
  if (inspect)
    inspect_headers = [&](const hub::LocalModel& headers) -> Status {
      ResolvedModel resolved = Resolved(headers);
      const hub::Settings& settings = hub.settings();
      resolved.downloads = name.place == hub::Place::kHub ? settings.cache : settings.downloads;
      return inspect(resolved);
    };
  auto local = need == ModelNeed::kWeights ? hub.Pull(name, display.Events(), inspect_headers)
                                           : hub.PullHeaders(name, display.Events());
  display.Finish();
  if (!local.has_value()) return Fail(WithBundlesOf(local.error(), name, cache_dir));
  return Resolved(*local);
}

}  // namespace

std::string ModelNameOf(const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path);
  const bool is_file = whole.extension() == ".gguf" || whole.extension() == ".irpa";
  std::string name = is_file ? whole.stem() : whole.filename();
  return EscapeNonUtf8(name.empty() ? "model" : name);
}

Result<ResolvedModel> ResolveModel(const std::string& model, const HubOptions& hub,
                                   const std::string& cache_dir, ModelNeed need,
                                   const InspectFn& inspect) {
  std::error_code error;  // What cannot be examined cannot be read either.
  if (std::filesystem::exists(model, error)) {
    if (!hub.revision.empty())
      return Fail(InvalidArgument(fmt::format(
          "--revision chooses a revision of a repository, but {} is on this disk", model)));
    return OnDisk(model);
  }
  if (const auto cached = CachedBundlePath(model, cache_dir)) {
    if (!hub.revision.empty())
      return Fail(InvalidArgument(fmt::format(
          "--revision chooses a revision of a repository, but {} is a bundle of the cache",
          model)));
    return OnDisk(*cached);
  }
  if (!hub::IsNameShaped(model)) return Fail(AbsentName(model, hub, cache_dir));
  TESSERA_ASSIGN_OR_RETURN(hub::RepositoryName name,
                           hub::ParseRepositoryName(model, HubEndpoint()));
  if (name.place == hub::Place::kPath) {
    if (!std::filesystem::exists(name.path, error)) return Fail(Absent(name.path));
    return OnDisk(name.path);
  }
  if (!hub.revision.empty()) {
    if (name.place != hub::Place::kHub)
      return Fail(InvalidArgument("--revision is for repositories of the hub only"));
    if (!name.revision.empty() && name.revision != hub.revision)
      return Fail(InvalidArgument(fmt::format("{} names the revision {}, --revision another: {}",
                                              model, name.revision, hub.revision)));
    TESSERA_RETURN_IF_ERROR(hub::CheckRevision(hub.revision).WithContext("--revision"));
    name.revision = hub.revision;
  }
  return Pull(name, hub, cache_dir, need, inspect);
}

Status RequireBundle(const std::string& folder) {
  return bundle::CheckIsBundle(folder).WithContext("--bundle");
}

}  // namespace tessera::cli
