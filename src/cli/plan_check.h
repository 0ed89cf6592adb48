// SPDX-License-Identifier: Apache-2.0
//
// CheckWork: refuses what cannot come to a good end before it takes long: before weights are
// downloaded, and before they are compiled. From headers; no weight is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/status.h"
#include "compiler/compile.h"
#include "kernels/attention.h"
#include "model/open.h"
#include "runtime/kv_budget.h"

namespace tessera::cli {

/// What is about to be done with a model.
struct PlannedWork {
  std::string model;       // As the user named it.
  std::string repository;  // With `revision`, as a bundle's manifest says.
  std::string revision;
  bool runs_here = false;  // And not only compiled.
  bool certify = true;     // As of compile --no-certificate.
  kernels::KvType kv_type = kernels::KvType::kF16;
  runtime::KvWish kv;
  uint64_t to_download = 0;         // Bytes; 0: the weights are here.
  std::filesystem::path downloads;  // Where to.
  std::filesystem::path bundles;    // The cache in which the bundle will be.
};

/// One sentence with need, have and what helps: kResourceExhausted for memory (to run it with the
/// shortest useful sequence, or to compile it) and, where something is to be downloaded, disk.
/// kNotFound without a tokenizer; else errors of compiler::MakeDryRun.
Status CheckWork(const model::ModelSource& source, const PlannedWork& work,
                 const compiler::CompileOptions& options);

/// kNotFound when the repository has no tokenizer: what cannot be compiled.
Status CheckHasTokenizer(const model::ModelSource& source);

}  // namespace tessera::cli
