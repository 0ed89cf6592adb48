// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle.h"

#include <fmt/format.h>

#include <system_error>

#include "base/file.h"
#include "bundle/limits.h"
#include "bundle/program_verify.h"
#include "formats/open.h"

namespace tessera::bundle {

namespace fs = std::filesystem;

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

Result<Bundle> OpenBundle(const fs::path& folder, Check check) {
  TESSERA_RETURN_IF_ERROR(CheckIsBundle(folder));
  const auto read = [&](std::string_view name) {
    return ReadFile(folder / name, kMaxDocumentBytes);
  };
  const auto where = [&](std::string_view name) { return (folder / name).string(); };
  Bundle bundle;
  bundle.folder = folder;
  TESSERA_ASSIGN_OR_RETURN(bundle.manifest, LoadManifest(folder));
  if (bundle.manifest.target != "cpu")
    return Fail(
        Unimplemented(fmt::format("bundle {} is for target {}; this program runs cpu bundles",
                                  folder.string(), bundle.manifest.target)));
  for (const std::string_view name : {kConfigFile, kProgramFile, kParametersFile})
    if (bundle.manifest.FindFile(name) == nullptr)
      return Fail(DataLoss(fmt::format("bundle {}: its manifest lacks {}", folder.string(), name)));
  TESSERA_RETURN_IF_ERROR(VerifyFiles(folder, bundle.manifest, check));
  TESSERA_ASSIGN_OR_RETURN(const std::string config, read(kConfigFile));
  TESSERA_ASSIGN_OR_RETURN(bundle.config, ReadServingConfig(config, where(kConfigFile)));
  TESSERA_ASSIGN_OR_RETURN(const std::string program, read(kProgramFile));
  TESSERA_ASSIGN_OR_RETURN(bundle.program, ReadProgram(program, where(kProgramFile)));
  TESSERA_RETURN_IF_ERROR(VerifyProgram(bundle.program).WithContext(where(kProgramFile)));
  TESSERA_ASSIGN_OR_RETURN(bundle.archive, formats::Open(folder / kParametersFile));
  TESSERA_RETURN_IF_ERROR(
      VerifyArchive(bundle.program, bundle.archive).WithContext(folder.string()));
  return bundle;
}

}  // namespace tessera::bundle
