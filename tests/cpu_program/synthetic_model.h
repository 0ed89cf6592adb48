// SPDX-License-Identifier: Apache-2.0
//
// Small models with random weights, for what no published tiny model has: every variation of the
// vocabulary, and files that mix weight formats.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "compiler/compile.h"
#include "model/open.h"

namespace tessera::testing {

/// Hidden 64, 2 layers, 4 heads of 16 over 2 KV heads, ffn 96, vocabulary 100 (no multiple of
/// eight), context 256, GGUF names, interleaved rope.
model::ModelConfig SyntheticConfig();

/// The same, wide enough for BF16 to stay BF16: hidden 512, heads of 128, ffn 544,
/// context 2048.
model::ModelConfig WideSyntheticConfig();

/// The type that a weight of that name and shape is written in.
using TypeOf = std::function<tensor::DType(const std::string& name, const tensor::Shape& shape)>;
/// Matrices in `matrix`, vectors in F32.
TypeOf AllMatrices(tensor::DType matrix);

/// Writes random weights for the config into `file` and opens it again. Fails the test on errors.
/// Another seed gives other weights.
model::ModelSource MakeSynthetic(const model::ModelConfig& config, const TypeOf& type_of,
                                 const std::filesystem::path& file, uint64_t seed = 1);

/// Compiled into a store in `cache`.
Result<compiler::CompileReport> CompileSynthetic(const model::ModelSource& source,
                                                 const std::filesystem::path& cache);

}  // namespace tessera::testing
