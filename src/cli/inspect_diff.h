// SPDX-License-Identifier: Apache-2.0
//
// What differs between two bundles, or between two parameter files: manifest, serving config,
// program and parameters, each difference with its place and both values.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "bundle/bundle.h"
#include "formats/parameter_index.h"

namespace tessera::cli {

struct Difference {
  std::string where;  // "manifest.options.max_seq_len", "parameters.blk.0.attn_q.weight"
  std::string from;   // "(absent)" where only the other has it.
  std::string to;
};

/// In order of place.
std::vector<Difference> DiffJson(const json::Value& a, const json::Value& b, std::string_view root);
/// Names, types, shapes; of those that agree, the bytes, which are read.
std::vector<Difference> DiffParameters(const formats::ParameterIndex& a,
                                       const formats::ParameterIndex& b);
/// All of a bundle. Bytes of parameters are compared only where the manifests' hashes differ.
Result<std::vector<Difference>> DiffBundles(const bundle::Bundle& a, const bundle::Bundle& b);

std::string DiffText(const std::vector<Difference>& differences);
json::Value DiffReport(const std::vector<Difference>& differences);

}  // namespace tessera::cli
