// SPDX-License-Identifier: Apache-2.0
//
// The small files of a bundle: as the repository has them, or made where it has none.
#pragma once

#include <string>
#include <vector>

#include "bundle/serving_config.h"
#include "compiler/compile.h"
#include "compiler/module.h"

namespace tessera::compiler {

/// config.json for the program.
bundle::ServingConfig MakeServingConfig(const Module& module);

/// All but the tokenizer's: tokenizer_config.json, generation_config.json and, if there is a
/// template, chat_template.jinja.
std::vector<model::RepositoryFile> MakeDocuments(const CompileInput& input);

}  // namespace tessera::compiler
