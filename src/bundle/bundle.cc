// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include "base/file.h"
#include "base/hash.h"
#include "bundle/identity.h"
#include "bundle/limits.h"
#include "bundle/program_verify.h"
#include "formats/open.h"

namespace tessera::bundle {

namespace fs = std::filesystem;

namespace {

struct ConfigField {
  std::string_view name;
  int64_t config;
  int64_t program;
};

/// config.json says what clients may ask for, the program what it can do.
Status CheckConfig(const ServingConfig& config, const Program& program) {
  const Dims& d = program.dims;
  std::vector<ConfigField> fields = {
      {"max_seq_len", config.max_seq_len, d.max_seq_len},
      {"attn_head_dim", config.attn_head_dim, d.head_dim},
      {"transformer_block_count", config.transformer_block_count, d.layers}};
  if (const auto& kv = config.paged_kv_cache) {
    fields.push_back(
        {"paged_kv_cache.attention_head_count_kv", kv->attention_head_count_kv, d.kv_heads});
    fields.push_back({"paged_kv_cache.block_seq_stride", kv->block_seq_stride, d.page_tokens});
  }
  for (const ConfigField& field : fields) {
    if (field.config == field.program) continue;
    return DataLoss(fmt::format(
        "{} is {} in {}, {} in {}: they are of different models or options; take both from one "
        "compilation",
        field.name, field.config, kConfigFile, field.program, kProgramFile));
  }
  return {};
}

/// Program and config, verified by themselves and against each other.
Status ReadPair(const fs::path& program, const fs::path& config, Bundle* bundle) {
  TESSERA_ASSIGN_OR_RETURN(const std::string config_text, ReadFile(config, kMaxDocumentBytes));
  TESSERA_ASSIGN_OR_RETURN(bundle->config, ReadServingConfig(config_text, config.string()));
  TESSERA_ASSIGN_OR_RETURN(const std::string program_text, ReadFile(program, kMaxDocumentBytes));
  TESSERA_ASSIGN_OR_RETURN(bundle->program, ReadProgram(program_text, program.string()));
  TESSERA_RETURN_IF_ERROR(VerifyProgram(bundle->program).WithContext(program.string()));
  // Names both files.
  TESSERA_RETURN_IF_ERROR(
      CheckConfig(bundle->config, bundle->program)
          .WithContext(fmt::format("{}, {}", config.string(), program.string())));
  bundle->manifest.key =
      Sha256Hex(AsBytes(config_text + program_text)).substr(0, 16);  // Until a manifest says it.
  return {};
}

}  // namespace

Status CheckIsBundle(const fs::path& folder) {
  const fs::path path = folder / kManifestFile;
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return NotFound(fmt::format("{} is no bundle: it has no {}", folder.string(), kManifestFile));
  // A program beside it is ours, whatever became of the manifest. Otherwise its second member
  // tells; as text, so that a manifest cut short still counts.
  if (fs::is_regular_file(folder / kProgramFile, error)) return {};
  const Result<std::string> text = ReadFile(path, kMaxDocumentBytes);
  if (text.has_value() && text->contains("\"tessera_version\"")) return {};
  return NotFound(fmt::format("{} is no bundle: its {} is not one of Tessera's", folder.string(),
                              kManifestFile));
}

std::vector<std::string> ArchiveNames(int64_t ranks) {
  std::vector<std::string> names = {std::string(kParametersFile)};
  for (int64_t rank = 0; ranks > 1 && rank < ranks; ++rank)
    names.push_back(RankFile(kParametersFile, rank));
  return names;
}

namespace {

/// What the ranks run, all or one of them; their weights must be in the index.
Result<std::vector<RankProgram>> RanksOf(const Program& program, int64_t ranks,
                                         std::optional<int64_t> rank,
                                         const formats::ParameterIndex& index) {
  // Whether uneven shares were allowed was decided when the bundle was made.
  TESSERA_ASSIGN_OR_RETURN(const std::vector<RankShare> shares, PlanShares(program, ranks, true));
  std::vector<RankProgram> all;
  for (int64_t i = rank.value_or(0); i < (rank ? *rank + 1 : ranks); ++i) {
    TESSERA_ASSIGN_OR_RETURN(RankProgram part, MakeRankProgram(program, shares, i));
    TESSERA_RETURN_IF_ERROR(VerifyArchive(part.program, index));
    all.push_back(std::move(part));
  }
  return all;
}

}  // namespace

Result<Archives> OpenArchives(const Program& program, const fs::path& folder, int64_t ranks,
                              std::optional<int64_t> rank) {
  if (rank && (*rank < 0 || *rank >= ranks))
    return Fail(InvalidArgument(fmt::format("rank {} of a bundle for tp{}", *rank, ranks)));
  std::vector<fs::path> files;
  for (const std::string& name : ArchiveNames(ranks))
    if (!rank || name == kParametersFile || name == RankFile(kParametersFile, *rank))
      files.push_back(folder / name);
  Archives archives;
  TESSERA_ASSIGN_OR_RETURN(archives.index, formats::OpenAll(files));
  TESSERA_ASSIGN_OR_RETURN(archives.ranks, RanksOf(program, ranks, rank, archives.index));
  return archives;
}

Result<Bundle> OpenBundle(const fs::path& folder, Check check, std::optional<int64_t> rank) {
  TESSERA_RETURN_IF_ERROR(CheckIsBundle(folder));
  Bundle bundle;
  bundle.folder = folder;
  TESSERA_ASSIGN_OR_RETURN(bundle.manifest, LoadManifest(folder));
  if (bundle.manifest.target != "cpu")
    return Fail(
        Unimplemented(fmt::format("bundle {} is for target {}; this program runs cpu bundles",
                                  folder.string(), bundle.manifest.target)));
  std::vector<std::string> needed = ArchiveNames(bundle.manifest.tensor_parallel);
  needed.emplace_back(kConfigFile);
  needed.emplace_back(kProgramFile);
  for (const std::string& name : needed)
    if (bundle.manifest.FindFile(name) == nullptr)
      return Fail(DataLoss(fmt::format("bundle {}: its manifest lacks {}", folder.string(), name)));
  Manifest wanted = bundle.manifest;
  if (rank)
    std::erase_if(wanted.files, [&](const FileRecord& file) {
      return file.name.starts_with("model.rank") && file.name != RankFile(kParametersFile, *rank);
    });
  TESSERA_RETURN_IF_ERROR(VerifyFiles(folder, wanted, check));
  const std::string key = bundle.manifest.key;
  TESSERA_RETURN_IF_ERROR(ReadPair(folder / kProgramFile, folder / kConfigFile, &bundle));
  bundle.manifest.key = key;
  Result<Archives> archives =
      OpenArchives(bundle.program, folder, bundle.manifest.tensor_parallel, rank);
  if (!archives.has_value()) return Fail(archives.error().WithContext(folder.string()));
  TESSERA_RETURN_IF_ERROR(
      CheckIdentity(archives->index, bundle.manifest.export_key).WithContext(folder.string()));
  bundle.ranks = std::move(archives->ranks);
  bundle.archive = std::move(archives->index);
  return bundle;
}

namespace {

/// Which ranks' files are among the archives: those whose weights are called ".shard.RANK".
std::set<int64_t> RanksIn(const formats::ParameterIndex& index) {
  std::set<int64_t> ranks;
  for (const formats::ParameterEntry& entry : index.entries()) {
    const size_t at = entry.name.rfind(kShardSuffix);
    if (at == std::string::npos) continue;
    int64_t rank = -1;
    const char* end = entry.name.data() + entry.name.size();
    const auto [stop, error] =
        std::from_chars(entry.name.data() + at + kShardSuffix.size(), end, rank);
    if (error == std::errc() && stop == end) ranks.insert(rank);
  }
  return ranks;
}

/// A program for several ranks needs a file for each, one for one rank none.
Status CheckRankFiles(const formats::ParameterIndex& index, int64_t ranks) {
  const std::set<int64_t> found = RanksIn(index);
  std::vector<std::string> missing;
  for (int64_t rank = 0; ranks > 1 && rank < ranks; ++rank)
    if (!found.contains(rank)) missing.push_back(RankFile(kParametersFile, rank));
  if (!missing.empty())
    return InvalidArgument(fmt::format(
        "it is for tp{}, and {} is not among the parameters; name model.irpa and all of "
        "its {} rank files",
        ranks, fmt::join(missing, ", "), ranks));
  const int64_t last = found.empty() ? -1 : *found.rbegin();
  if (last >= (ranks > 1 ? ranks : 0))
    return InvalidArgument(
        fmt::format("it is for tp{}, and a file of rank {} is given; take config, program "
                    "and parameters from one compilation",
                    ranks, last));
  return {};
}

}  // namespace

Result<Bundle> OpenParts(const Parts& parts) {
  Bundle bundle;
  bundle.folder = parts.program.parent_path();
  bundle.manifest.target = "cpu";
  TESSERA_RETURN_IF_ERROR(ReadPair(parts.program, parts.config, &bundle));
  std::set<fs::path> named;
  for (const fs::path& path : parts.parameters) {
    std::error_code error;  // What cannot be resolved is compared as it is written.
    const fs::path whole = fs::canonical(path, error);
    if (!named.insert(error ? path : whole).second)
      return Fail(InvalidArgument(fmt::format(
          "{} is named twice among the parameters; name each file once", path.string())));
    TESSERA_ASSIGN_OR_RETURN(formats::ParameterIndex index, formats::Open(path));
    TESSERA_RETURN_IF_ERROR(bundle.archive.Join(std::move(index)).WithContext(path.string()));
  }
  TESSERA_RETURN_IF_ERROR(CheckIdentity(bundle.archive, ""));
  // A config of ours says how many ranks it is for; others have one.
  const auto& kv = bundle.config.paged_kv_cache;
  const auto ranks =
      kv ? std::max<int64_t>(1, std::ssize(kv->paged_kv_block_size_elements_per_device)) : 1;
  bundle.manifest.tensor_parallel = ranks;
  TESSERA_RETURN_IF_ERROR(CheckRankFiles(bundle.archive, ranks).WithContext(parts.config.string()));
  Result<std::vector<RankProgram>> programs =
      RanksOf(bundle.program, ranks, std::nullopt, bundle.archive);
  if (!programs.has_value())
    return Fail(programs.error().WithContext(fmt::format(
        "{}, {}", parts.program.string(),
        parts.parameters.empty() ? "no parameters" : parts.parameters.front().string())));
  bundle.ranks = *std::move(programs);
  return bundle;
}

}  // namespace tessera::bundle
