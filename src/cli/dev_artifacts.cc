// SPDX-License-Identifier: Apache-2.0
#include "cli/dev_artifacts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "cli/module_function.h"
#include "cli/module_input.h"

#include "base/file.h"
#include "base/topology.h"
#include "bundle/bundle.h"
#include "formats/npy/npy.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersionsFile = "versions.txt";
constexpr std::string_view kVersionsHead = "tessera ";
/// Of the inputs: a prompt, and a sequence whose next token is decoded.
constexpr int64_t kContextTokens = 128;

/// What an earlier compilation left and this one may not write again.
Status RemoveOld(const fs::path& folder) {
  std::vector<fs::path> old;
  std::error_code error;
  for (const fs::path& place : {folder, folder / "graph", folder / "inputs"}) {
    for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      const bool ours = place != folder || name.starts_with("benchmark-flags");
      if (ours && it->is_regular_file(error)) old.push_back(it->path());
    }
  }
  for (const fs::path& path : old)
    if (!fs::remove(path, error) && error) return ErrnoStatus(error.value(), "removing", path);
  return {};
}

std::string VersionsText() {
  const Topology topology = ReadTopology();
  utsname system{};
  ::uname(&system);
  return fmt::format(
      "{}{}\ncompiler: {}\nlibc: {}\nsystem: {} {} {}\ncpu: {}\nisa: {}\ncores: {} ({} logical)\n"
      "threads by default: {}\nmemory: {} bytes\n",
      kVersionsHead, TESSERA_VERSION, __VERSION__, ::gnu_get_libc_version(), system.sysname,
      system.release, system.machine, topology.cpu_name, ReadIsa().ToString(),
      topology.cores.size(), topology.logical_cpus, topology.DefaultThreads(),
      topology.memory_bytes);
}

/// For a shell, whatever the text holds.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> ParameterFiles(const bundle::Bundle& bundle) {
  std::vector<std::string> names;
  for (const bundle::FileRecord& file : bundle.manifest.files)
    if (file.name.ends_with(".irpa")) names.push_back(file.name);
  return names;
}

struct FunctionFlags {
  std::string name;
  std::vector<std::string> inputs;  // "@inputs/decode_bs8.0.npy", "41x368640xf16"
};

/// Writes the inputs of a function and says how flags name them.
Result<FunctionFlags> WriteInputs(const fs::path& folder, const bundle::Bundle& bundle,
                                  const std::string& name) {
  TESSERA_ASSIGN_OR_RETURN(const FunctionName function, FindFunction(bundle.config, name));
  const int64_t context = std::min(kContextTokens, bundle.program.dims.max_seq_len - 1);
  TESSERA_ASSIGN_OR_RETURN(const std::vector<ModuleInput> inputs,
                           SampleInputs(bundle, function, std::max<int64_t>(context, 1)));
  FunctionFlags flags{name, {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ModuleInput& input = inputs[i];
    if (input.bytes.empty()) {
      flags.inputs.push_back(ModuleInputType(input.dtype, input.shape));
      continue;
    }
    const std::string file = fmt::format("inputs/{}.{}.npy", name, i);
    TESSERA_ASSIGN_OR_RETURN(const std::string npy,
                             formats::npy::Write(input.dtype, input.shape, input.bytes));
    TESSERA_RETURN_IF_ERROR(WriteFileAtomic(folder / file, npy));
    flags.inputs.push_back("@" + file);
  }
  return flags;
}

std::string FlagfileText(const fs::path& folder, const bundle::Bundle& bundle,
                         const FunctionFlags& function) {
  std::string text = fmt::format("# tessera benchmark-module --flagfile={}\n",
                                 (folder / "benchmark-flags.txt").string());
  text += fmt::format("--module={}\n", (bundle.folder / bundle::kProgramFile).string());
  for (const std::string& name : ParameterFiles(bundle))
    text += fmt::format("--parameters=model={}\n", (bundle.folder / name).string());
  text += "--device=local-task\n";
  text += fmt::format("--function={}\n", function.name);
  for (const std::string& input : function.inputs)
    text += input.starts_with("@")
                ? fmt::format("--input=@{}\n", (folder / input.substr(1)).string())
                : fmt::format("--input={}\n", input);
  return text;
}

std::string ReproduceText(const bundle::Bundle& bundle,
                          const std::vector<FunctionFlags>& functions) {
  std::string text = fmt::format(
      "#!/bin/sh\n"
      "# Checks a bundle and times its functions, with the inputs of this folder.\n"
      "# Usage: ./reproduce.sh [BUNDLE [FLAG...]]; $TESSERA names the program (default: tessera).\n"
      "set -eu\n"
      "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
      "bundle=${{1:-{}}}\n"
      "[ $# -eq 0 ] || shift\n"
      "tessera=${{TESSERA:-tessera}}\n"
      "command -v \"$tessera\" >/dev/null || {{\n"
      "  echo \"reproduce: there is no program $tessera: name it, TESSERA=/path/to/tessera $0\" "
      ">&2\n"
      "  exit 1\n"
      "}}\n"
      "[ -f \"$bundle/manifest.json\" ] || {{\n"
      "  echo \"reproduce: $bundle is no bundle: name it, $0 BUNDLE\" >&2\n"
      "  exit 1\n"
      "}}\n"
      "bundle=$(cd \"$bundle\" && pwd)\n"
      "grep -q '\"key\": \"{}\"' \"$bundle/manifest.json\" || {{\n"
      "  echo \"reproduce: $bundle is not the bundle of this folder (key {})\" >&2\n"
      "  exit 1\n"
      "}}\n"
      "made_with=$(head -n 1 \"$here/{}\")\n"
      "[ \"$(\"$tessera\" --version)\" = \"$made_with\" ] ||\n"
      "  echo \"reproduce: made with $made_with, this is $(\"$tessera\" --version)\" >&2\n"
      "\"$tessera\" inspect --verify --json \"$bundle\" >/dev/null\n"
      "cd \"$here\"\n",
      Quoted(bundle.folder.string()), bundle.manifest.key, bundle.manifest.key, kVersionsFile);
  for (const FunctionFlags& function : functions) {
    text += "\"$tessera\" benchmark-module --module=\"$bundle/program.json\"";
    for (const std::string& name : ParameterFiles(bundle))
      text += fmt::format(" \\\n  --parameters=model=\"$bundle/{}\"", name);
    text += fmt::format(" \\\n  --device=local-task --function={}", function.name);
    for (const std::string& input : function.inputs)
      text += fmt::format(" \\\n  --input={}", input);
    text += " \"$@\"\n";
  }
  return text;
}

Status MakeFolder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? ErrnoStatus(error.value(), "making the folder", path) : Status();
}

}  // namespace

Status CheckDevFolder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) ||
      (fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    return {};
  const Result<std::string> versions = ReadFile(folder / kVersionsFile, 1 << 20);
  if (versions.has_value() && versions->starts_with(kVersionsHead)) return {};
  return AlreadyExists(
      fmt::format("{} holds something else than dev artifacts; name an absent or empty folder",
                  folder.string()));
}

Status WriteDevArtifacts(const fs::path& where, const fs::path& bundle_folder,
                         const compiler::Explanation& explanation) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(where, error), error);
  if (error) return ErrnoStatus(error.value(), "examining", where);
  const fs::path bundle_path = fs::canonical(bundle_folder, error);
  if (error) return ErrnoStatus(error.value(), "examining", bundle_folder);
  TESSERA_RETURN_IF_ERROR(CheckDevFolder(folder));
  TESSERA_ASSIGN_OR_RETURN(const bundle::Bundle bundle,
                           bundle::OpenBundle(bundle_path, bundle::Check::kSizesAndSmallFiles));
  TESSERA_RETURN_IF_ERROR(MakeFolder(folder / "graph"));
  TESSERA_RETURN_IF_ERROR(MakeFolder(folder / "inputs"));
  // First, so that a folder that was left half written is known as ours.
  TESSERA_RETURN_IF_ERROR(WriteFileAtomic(folder / kVersionsFile, VersionsText()));
  TESSERA_RETURN_IF_ERROR(RemoveOld(folder));
  for (size_t i = 0; i < explanation.passes.size(); ++i)
    TESSERA_RETURN_IF_ERROR(WriteFileAtomic(
        folder / "graph" / fmt::format("{:02}-{}.txt", i + 1, explanation.passes[i].name),
        explanation.passes[i].text));
  std::vector<FunctionFlags> functions;
  for (const std::string& name : FunctionNames(bundle.config)) {
    TESSERA_ASSIGN_OR_RETURN(FunctionFlags flags, WriteInputs(folder, bundle, name));
    const std::string text = FlagfileText(folder, bundle, flags);
    TESSERA_RETURN_IF_ERROR(
        WriteFileAtomic(folder / fmt::format("benchmark-flags.{}.txt", name), text));
    if (functions.empty())
      TESSERA_RETURN_IF_ERROR(WriteFileAtomic(folder / "benchmark-flags.txt", text));
    functions.push_back(std::move(flags));
  }
  TESSERA_RETURN_IF_ERROR(WriteFileAtomic(folder / "report.md", explanation.report));
  const fs::path script = folder / "reproduce.sh";
  TESSERA_RETURN_IF_ERROR(WriteFileAtomic(script, ReproduceText(bundle, functions)));
  fs::permissions(script, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add, error);
  return error ? ErrnoStatus(error.value(), "making executable", script) : Status();
}

}  // namespace tessera::cli
