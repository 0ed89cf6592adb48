// SPDX-License-Identifier: Apache-2.0
//
// One Add function per verb: it declares the verb's flags on the command line and what runs when
// the verb is chosen. A verb returns its Status to RunVerb, which prints an error as one line on
// stderr and sets the exit code: 0 = done, 1 = failed, 2 = wrong usage, 130 = an answer
// stopped by Ctrl-C.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// What verbs share; owned by main, outlives the parse.
struct Context {
  int exit_code = 0;
  std::vector<std::string> arguments{};  // Behind the program's name; flag files are expanded.
};

/// Runs `verb` and records the exit code. Exceptions of libraries (bad_alloc, filesystem) end here.
void RunVerb(Context* context, const std::function<Status()>& verb);

/// The same end for wrong usage that the parser cannot see: exit code 2.
void ReportUsage(Context* context, const Status& status);

void AddRun(CLI::App* app, Context* context);
void AddServe(CLI::App* app, Context* context);
void AddGateway(CLI::App* app, Context* context);
void AddEndpoints(CLI::App* app, Context* context);
void AddCompletions(CLI::App* app, Context* context);
void AddKey(CLI::App* app, Context* context);
void AddCompile(CLI::App* app, Context* context);
void AddPull(CLI::App* app, Context* context);
void AddCache(CLI::App* app, Context* context);
void AddPlan(CLI::App* app, Context* context);
void AddModels(CLI::App* app, Context* context);
void AddInspect(CLI::App* app, Context* context);
void AddTokenize(CLI::App* app, Context* context);  // tokenize, detokenize and render
void AddBench(CLI::App* app, Context* context);
void AddBenchmarkModule(CLI::App* app, Context* context);
void AddPerplexity(CLI::App* app, Context* context);
void AddDoctor(CLI::App* app, Context* context);

}  // namespace tessera::cli
