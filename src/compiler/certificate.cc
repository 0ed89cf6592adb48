// SPDX-License-Identifier: Apache-2.0
#include "compiler/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "compiler/documents.h"
#include "compiler/pipeline.h"
#include "compiler/targets/cpu/archive.h"
#include "compiler/targets/cpu/shards.h"
#include "model/build.h"

namespace tessera::compiler {
namespace {

namespace fs = std::filesystem;
using bundle::Parity;

constexpr std::string_view kWritingOriginal = "packing the original";

/// Removes a folder whatever happens.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool IsExact(const Module& module) {
  return std::ranges::all_of(module.formats, [](const auto& item) { return item.second.is_exact; });
}

/// The same model with every value of the source.
Result<Module> OriginalOf(const CompileInput& input, const Module& module) {
  TESSERA_ASSIGN_OR_RETURN(graph::Graph graph,
                           model::BuildGraph(input.source->config, input.source->index));
  Module original;
  original.graph = std::move(graph);
  original.index = module.index;
  original.options = module.options;
  original.options.quantize = kExactFormats;
  original.options.tensor_parallel = 1;
  original.max_seq_len = module.max_seq_len;
  std::vector<CompileReport::PassTime> times;
  TESSERA_RETURN_IF_ERROR(RunPipeline(CpuPipeline(), &original, &times));
  return original;
}

Status WriteOriginal(const Module& original, const fs::path& folder, const ProgressFn& progress) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), "making the folder", folder);
  TESSERA_ASSIGN_OR_RETURN(const std::vector<Archive> archives, ArchivesOf(original));
  TESSERA_RETURN_IF_ERROR(StatusOf(WriteCpuArchives(*original.index, archives, folder, progress,
                                                    Hashing::kNone, kWritingOriginal)));
  TESSERA_RETURN_IF_ERROR(
      WriteFileAtomic(folder / bundle::kProgramFile, bundle::WriteProgram(original.program)));
  return WriteFileAtomic(folder / bundle::kConfigFile,
                         bundle::WriteServingConfig(MakeServingConfig(original)));
}

Result<Parity> Measure(const CompileInput& input, const Module& module,
                       const bundle::BundleDraft& draft, const ProgressFn& progress) {
  TESSERA_ASSIGN_OR_RETURN(const Module original, OriginalOf(input, module));
  // Inside the draft, so that whoever removes a dead one removes this too.
  const TemporaryFolder folder(draft.folder() / "original.tmp");
  CertifyRequest request{
      .folder = draft.folder(),
      .original_folder = folder.path(),
      .write_original = [&] { return WriteOriginal(original, folder.path(), progress); },
      .progress = progress};
  for (const bundle::Weight& weight : module.program.weights)
    request.parameters += weight.n * weight.k;
  for (const bundle::Weight& weight : original.program.weights)
    request.original_bytes += static_cast<uint64_t>(weight.bytes);
  return input.certify(request);
}

std::string HashOf(const bundle::BundleDraft& draft, std::string_view name) {
  const bundle::FileRecord* file = draft.FindFile(name);
  return file == nullptr ? std::string() : file->sha256;
}

}  // namespace

Result<Parity> MakeParity(const CompileInput& input, const Module& module,
                          const bundle::BundleDraft& draft, const Parity* known,
                          const ProgressFn& progress) {
  Parity parity;
  if (IsExact(module)) {
    parity.kind = Parity::Kind::kExact;
  } else if (known != nullptr && known->kind == Parity::Kind::kMeasured) {
    parity = *known;
  } else if (input.certify) {
    TESSERA_ASSIGN_OR_RETURN(parity, Measure(input, module, draft, progress));
  } else {
    parity.reason = input.no_certificate;
  }
  parity.tokenizer_sha256 = HashOf(draft, bundle::kTokenizerFile);
  parity.chat_template_sha256 = HashOf(draft, bundle::kChatTemplateFile);
  return parity;
}

}  // namespace tessera::compiler
