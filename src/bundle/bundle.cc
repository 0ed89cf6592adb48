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

bool IsBundle(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / kManifestFile, error);
}

Result<Bundle> OpenBundle(const fs::path& folder, Check check) {
  if (!IsBundle(folder))
    return Fail(
        NotFound(fmt::format("{} is no bundle: it has no {}", folder.string(), kManifestFile)));
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
