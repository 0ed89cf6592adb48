// SPDX-License-Identifier: Apache-2.0
//
// What --emit-dataset asks for: the model as a dataset of sharktank's, in a file or a folder of the
// user's.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "compiler/compile.h"
#include "model/open.h"

namespace tessera::cli {

/// Whether there is a place for `target`, before anything is made for it.
Status CheckDatasetTarget(const std::string& target);

/// `target` is FILE.irpa, or a folder (made if absent) that gets NAME.irpa and, where the source
/// has them as files, the texts that make it a model again: tokenizer.json, its config, the chat
/// template. Texts that are there already stay. Notes go to stderr.
Status WriteDataset(const std::string& target, const std::string& name,
                    const model::ModelSource& source, int64_t ranks,
                    const compiler::ProgressFn& progress);

}  // namespace tessera::cli
