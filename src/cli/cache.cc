// SPDX-License-Identifier: Apache-2.0
//
// tessera cache ACTION: what downloads and bundles the caches hold, what they take, whether they
// are whole; removes them; carries them to machines without network and back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/cached_bundles.h"
#include "cli/disk_room.h"
#include "cli/environment.h"
#include "cli/hub_options.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

#include "base/draft.h"
#include "base/file.h"
#include "base/json.h"
#include "hub/cache_pack.h"
#include "hub/cache_scan.h"

namespace tessera::cli {
namespace {

struct Options {
  std::string action;
  std::vector<std::string> names;
  std::string cache_dir;
  HubOptions hub;
  std::string output;
  bool replace = false;
  bool json = false;
};

/// Both caches, as they are now.
struct Caches {
  std::filesystem::path downloads;  // In the layout of huggingface_hub.
  std::filesystem::path plain;      // The same, from addresses and buckets.
  std::filesystem::path bundles;    // The folder above bundles/.
  std::vector<hub::CachedRepository> repositories;
  std::vector<CachedBundle> compiled;
};

Result<Caches> Scan(const Options& options) {
  TESSERA_ASSIGN_OR_RETURN(const hub::Settings settings,
                           HubSettings(options.hub, options.cache_dir));
  Caches caches;
  caches.downloads = settings.cache;
  caches.plain = settings.downloads;
  TESSERA_ASSIGN_OR_RETURN(caches.bundles, CacheFolder(options.cache_dir));
  caches.repositories = hub::ScanCache(settings.cache);
  for (hub::CachedRepository& one : hub::ScanCache(settings.downloads))
    caches.repositories.push_back(std::move(one));
  caches.compiled = ScanBundles(caches.bundles);
  return caches;
}

/// "org/repo[@revision]" or "Model/folder" or a folder of either.
struct Chosen {
  std::vector<std::pair<const hub::CachedRepository*, std::string>> repositories;
  std::vector<const CachedBundle*> bundles;
};

Result<Chosen> Choose(const Caches& caches, const std::vector<std::string>& names, bool all) {
  Chosen chosen;
  if (names.empty() && all) {
    for (const auto& one : caches.repositories) chosen.repositories.emplace_back(&one, "");
    for (const auto& one : caches.compiled) chosen.bundles.push_back(&one);
    return chosen;
  }
  for (const std::string& name : names) {
    const size_t before = chosen.repositories.size() + chosen.bundles.size();
    const std::string base = name.substr(0, name.find('@'));
    const std::string revision = base.size() < name.size() ? name.substr(base.size() + 1) : "";
    for (const auto& one : caches.repositories)
      if (one.repository == base || one.folder == name)
        chosen.repositories.emplace_back(&one, revision);
    for (const auto& one : caches.compiled)
      if (one.name == name || one.folder == name) chosen.bundles.push_back(&one);
    if (chosen.repositories.size() + chosen.bundles.size() == before)
      return Fail(NotFound(fmt::format(
          "{} is neither a download nor a bundle of the caches; tessera cache ls lists them",
          name)));
  }
  if (names.empty()) return Fail(InvalidArgument("name what is meant; tessera cache ls lists it"));
  return chosen;
}

json::Object Describe(const hub::CachedRepository& one) {
  json::Array snapshots;
  for (const auto& snapshot : one.snapshots) {
    json::Array refs;
    for (const std::string& ref : snapshot.refs) refs.emplace_back(ref);
    snapshots.push_back(json::Object{{"commit", snapshot.commit},
                                     {"refs", std::move(refs)},
                                     {"bytes", snapshot.bytes},
                                     {"files", snapshot.files}});
  }
  return {{"kind", "download"},          {"name", one.repository},
          {"bytes", one.bytes},          {"partial_bytes", one.partial_bytes},
          {"path", one.folder.string()}, {"snapshots", std::move(snapshots)}};
}

json::Object Describe(const CachedBundle& one) {
  json::Object row{
      {"kind", "bundle"}, {"name", one.name}, {"bytes", one.bytes}, {"path", one.folder.string()}};
  if (one.manifest.has_value()) {
    row["repository"] = one.manifest->source.repository;
    row["revision"] = one.manifest->source.revision;
  } else {
    row["error"] = one.manifest.error().ToString();
  }
  return row;
}

Status List(const Options& options, const Caches& caches) {
  if (options.json) {
    json::Array rows;
    for (const auto& one : caches.repositories) rows.push_back(Describe(one));
    for (const auto& one : caches.compiled) rows.push_back(Describe(one));
    fmt::print("{}", json::SerializePretty(json::Object{{"entries", std::move(rows)}}));
    return {};
  }
  for (const auto& one : caches.repositories) {
    fmt::print("download  {:>9}  {}", HumanBytes(one.bytes), one.repository);
    for (const auto& snapshot : one.snapshots)
      fmt::print("  {}{}", snapshot.commit.substr(0, 12),
                 snapshot.refs.empty() ? "" : fmt::format(" ({})", fmt::join(snapshot.refs, ", ")));
    if (one.partial_bytes > 0) fmt::print("  {} interrupted", HumanBytes(one.partial_bytes));
    fmt::print("\n");
  }
  for (const auto& one : caches.compiled)
    fmt::print("bundle    {:>9}  {}{}\n", HumanBytes(one.bytes), one.name,
               one.manifest.has_value() ? "" : "  damaged: " + one.manifest.error().ToString());
  return {};
}

Status Usage(const Options& options, const Caches& caches) {
  uint64_t downloads = 0;
  uint64_t partial = 0;
  uint64_t bundles = 0;
  for (const auto& one : caches.repositories) {
    downloads += one.bytes;
    partial += one.partial_bytes;
  }
  for (const auto& one : caches.compiled) bundles += one.bytes;
  if (options.json) {
    fmt::print("{}", json::SerializePretty(json::Object{
                         {"downloads", {{"bytes", downloads}, {"path", caches.downloads.string()}}},
                         {"bundles", {{"bytes", bundles}, {"path", caches.bundles.string()}}},
                         {"partial_bytes", partial},
                         {"total_bytes", downloads + bundles}}));
    return {};
  }
  fmt::print("{:>9}  downloads in {} ({} of it interrupted)\n{:>9}  bundles in {}\n{:>9}  total\n",
             HumanBytes(downloads), caches.downloads.string(), HumanBytes(partial),
             HumanBytes(bundles), caches.bundles.string(), HumanBytes(downloads + bundles));
  return {};
}

Status Verify(const Options& options, const Caches& caches) {
  TESSERA_ASSIGN_OR_RETURN(const Chosen chosen, Choose(caches, options.names, /*all=*/true));
  std::vector<std::string> damaged;
  for (const auto& [repository, revision] : chosen.repositories) {
    // Nobody announced a hash of what came from plain addresses.
    if (repository->folder.parent_path() == caches.plain) continue;
    Progress bar("verifying " + repository->repository);
    TESSERA_ASSIGN_OR_RETURN(const auto blobs,
                             hub::FindDamagedBlobs(*repository, [&](uint64_t done, uint64_t total) {
                               bar.Update(done, total);
                             }));
    bar.Finish();
    for (const auto& blob : blobs) damaged.push_back(blob.string());
  }
  for (const CachedBundle* one : chosen.bundles) {
    Status status = StatusOf(one->manifest);
    if (status.ok())
      status = bundle::VerifyFiles(one->folder, *one->manifest, bundle::Check::kEverything);
    if (status.ok()) continue;
    Note("{}\n", status.ToString());
    damaged.push_back(one->folder.string());
  }
  if (options.json) {
    json::Array rows;
    for (const std::string& path : damaged) rows.emplace_back(path);
    fmt::print("{}", json::SerializePretty(json::Object{{"damaged", std::move(rows)}}));
  }
  if (!damaged.empty())
    return DataLoss(fmt::format("damaged: {}; remove what is damaged and pull or compile it again",
                                fmt::join(damaged, ", ")));
  if (!options.json)
    fmt::print("{} downloads and {} bundles are whole\n", chosen.repositories.size(),
               chosen.bundles.size());
  return {};
}

Status Remove(const Options& options, const Caches& caches) {
  TESSERA_ASSIGN_OR_RETURN(const Chosen chosen, Choose(caches, options.names, /*all=*/false));
  for (const auto& [repository, revision] : chosen.repositories) {
    if (!revision.empty())
      return InvalidArgument(
          fmt::format("{} is removed as a whole, since its revisions share files: leave out @{}",
                      repository->repository, revision));
    TESSERA_RETURN_IF_ERROR(hub::RemoveRepository(*repository));
    Note("removed {}, {}\n", repository->repository, HumanBytes(repository->bytes));
  }
  for (const CachedBundle* one : chosen.bundles) {
    TESSERA_RETURN_IF_ERROR(RemoveAtOnce(one->folder));
    Note("removed {}, {}\n", one->name, HumanBytes(one->bytes));
  }
  return {};
}

Status Export(const Options& options, const Caches& caches) {
  if (options.output.empty()) return InvalidArgument("name the pack to write: --output FILE");
  TESSERA_ASSIGN_OR_RETURN(const Chosen chosen, Choose(caches, options.names, /*all=*/false));
  std::vector<hub::PackSource> sources;
  json::Array repositories;
  for (const auto& [repository, revision] : chosen.repositories)
    TESSERA_RETURN_IF_ERROR(hub::AddToPack(*repository, revision, &sources, &repositories));
  for (const CachedBundle* one : chosen.bundles) TESSERA_RETURN_IF_ERROR(AddToPack(*one, &sources));
  Progress bar("packing");
  TESSERA_RETURN_IF_ERROR(
      hub::WritePack(std::move(sources), std::move(repositories), options.output,
                     [&](uint64_t done, uint64_t total) { bar.Update(done, total); }));
  bar.Finish();
  fmt::print("{}\n", options.output);
  return {};
}

/// Room for what a pack has and the caches lack, before its first byte is written.
Status CheckRoomFor(const std::vector<hub::PackEntry>& entries,
                    const std::vector<hub::RepositoryImport>& imports, const Caches& caches) {
  std::map<std::filesystem::path, uint64_t> needed;  // By the folder that it goes to.
  for (const hub::PackEntry& entry : entries) {
    if (entry.path.starts_with(kBundleEntries)) {
      if (!IsPresent((caches.bundles / entry.path).parent_path()))
        needed[caches.bundles] += entry.bytes;
      continue;
    }
    const auto owner = std::find_if(imports.begin(), imports.end(), [&](const auto& import) {
      return entry.path.starts_with(import.EntryPrefix());
    });
    if (owner != imports.end() && !owner->Has(entry)) needed[owner->cache()] += entry.bytes;
  }
  std::vector<DiskNeed> needs;
  for (const auto& [folder, bytes] : needed) needs.push_back({folder, bytes});
  const auto lack = FindDiskLack(needs);
  if (!lack) return {};
  return ResourceExhausted(
      fmt::format("the pack brings {} and {} are free in {}: free some space, or name another "
                  "folder with --hf-cache-dir or --cache-dir",
                  HumanBytes(lack->need), HumanBytes(lack->available), lack->folder.string()));
}

Status Import(const Options& options, const Caches& caches) {
  if (options.names.size() != 1) return InvalidArgument("name one pack: tessera cache import FILE");
  TESSERA_ASSIGN_OR_RETURN(hub::PackReader reader, hub::PackReader::Open(options.names.front()));
  std::vector<hub::RepositoryImport> imports;
  for (const json::Value& row : reader.manifest().repositories) {
    TESSERA_ASSIGN_OR_RETURN(auto import,
                             hub::RepositoryImport::Begin(row, caches.downloads, caches.plain));
    imports.push_back(std::move(import));
  }
  const std::vector<hub::PackEntry>& entries = reader.manifest().entries;
  TESSERA_RETURN_IF_ERROR(CheckRoomFor(entries, imports, caches));
  for (size_t i = 0; i < entries.size();) {
    if (entries[i].path.starts_with(kBundleEntries)) {
      std::string note;
      TESSERA_ASSIGN_OR_RETURN(const size_t taken, ImportBundle(reader, i, caches.bundles, &note));
      if (!note.empty()) Note("{}\n", note);
      // As `ls` names it, and as every verb takes it.
      const std::filesystem::path file(entries[i].path.substr(kBundleEntries.size()));
      fmt::print("{}\n", file.parent_path().string());
      i += taken;
      continue;
    }
    const auto owner = std::find_if(imports.begin(), imports.end(), [&](const auto& import) {
      return entries[i].path.starts_with(import.EntryPrefix());
    });
    if (owner == imports.end())
      return InvalidArgument(
          fmt::format("the pack's entry {} belongs to nothing", entries[i].path));
    TESSERA_RETURN_IF_ERROR(owner->Take(reader, entries[i]));
    ++i;
  }
  for (hub::RepositoryImport& import : imports) {
    std::vector<std::string> kept;
    TESSERA_RETURN_IF_ERROR(import.Finish(options.replace, &kept));
    for (const std::string& note : kept) Note("{}\n", note);
    fmt::print("{}@{}\n", import.repository(), import.commit());
  }
  return {};
}

Status Run(const Options& options) {
  TESSERA_ASSIGN_OR_RETURN(const Caches caches, Scan(options));
  if (options.action == "ls") return List(options, caches);
  if (options.action == "du") return Usage(options, caches);
  if (options.action == "verify") return Verify(options, caches);
  if (options.action == "rm") return Remove(options, caches);
  if (options.action == "export") return Export(options, caches);
  return Import(options, caches);
}

}  // namespace

void AddCache(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "cache", "Downloads and bundles on this disk: list, measure, verify, remove, carry");
  verb->add_option(
          "ACTION", options->action,
          "ls: list; du: how much; verify: compare with hashes; rm: remove; export: write a "
          "pack for a machine without network; import: take one in")
      ->required()
      ->check(CLI::IsMember({"ls", "du", "verify", "rm", "export", "import"}));
  verb->add_option("NAME", options->names,
                   "org/repo[@revision], a bundle as ls names it, or the folder of either; of "
                   "import the pack (verify without NAME: all)");
  verb->add_option(
      "--hf-cache-dir", options->hub.hf_cache_dir,
      "Where downloads are (else $HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub)");
  verb->add_option("--cache-dir", options->cache_dir,
                   "Where bundles are (else $TESSERA_CACHE, $XDG_CACHE_HOME/tessera, "
                   "~/.cache/tessera)");
  verb->add_option("-o,--output", options->output, "export: the pack; nothing may be there yet");
  verb->add_flag("--replace", options->replace,
                 "import: branches and tags that point elsewhere are moved");
  verb->add_flag("--json", options->json, "Facts as JSON on stdout");
  verb->callback([options, context] { RunVerb(context, [&] { return Run(*options); }); });
}

}  // namespace tessera::cli
