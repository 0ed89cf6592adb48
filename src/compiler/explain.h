// SPDX-License-Identifier: Apache-2.0
//
// What the compiler decided, for people: the module after every pass as text, and a report. Runs
// the pipeline again, which reads headers only; the parameters are not touched. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compile.h"

namespace tessera::compiler {

struct PassText {
  std::string name;  // "match-layers"
  std::string text;  // What changed in the module; the rest stands in the files before.
};

struct Explanation {
  std::vector<PassText> passes;  // In order.
  std::string report;            // Markdown.
};

/// Of what Compile() did with the same input and options, and reported. Errors of the pipeline.
Result<Explanation> Explain(const CompileInput& input, const CompileOptions& options,
                            const CompileReport& report);

}  // namespace tessera::compiler
