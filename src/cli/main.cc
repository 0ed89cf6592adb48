// SPDX-License-Identifier: Apache-2.0
//
// The `tessera` program. Wires the verbs to the command line; under the name `shark-compile` the
// arguments are those of `tessera compile`.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flagfile.h"
#include "cli/foreign_flags.h"
#include "cli/option_groups.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/check.h"
#include "base/draft.h"
#include "base/log.h"
#include "base/mapping_guard.h"
#include "formats/printable.h"

namespace tessera::cli {

void RunVerb(Context* context, const std::function<Status()>& verb) {
  Status status;
  try {
    status = verb();
  } catch (const std::exception& error) {
    // fmt throws when a write to stdout fails; the check below says it better.
    if (std::ferror(stdout) == 0) status = Internal(error.what());
  }
  // Once for all verbs: what a full disk or a closed pipe took is an error, not silence.
  if (const Status written = FlushStdout(); status.ok()) status = written;
  if (status.ok()) return;
  context->exit_code = 1;
  WriteError(status.ToString());
  log::debug("made at {}, code {}", status.Place(), CodeName(status.code()));
}

constexpr int kUsageError = 2;

void ReportUsage(Context* context, const Status& status) {
  context->exit_code = kUsageError;
  WriteError(status.ToString());
}

namespace {

/// What is wrong with a flag that the chosen verb does not have but that we know of.
std::optional<std::string> ForeignFlag(const CLI::App& app,
                                       const std::vector<std::string>& arguments) {
  // The verb, and what stands below it ("endpoints create").
  std::vector<const CLI::App*> places = {&app};
  for (const std::string& argument : arguments) {
    const auto named = places.back()->get_subcommands(
        [&](const CLI::App* candidate) { return candidate->get_name() == argument; });
    if (!named.empty()) places.push_back(named.front());
  }
  if (places.size() == 1) return std::nullopt;
  return FindForeignFlag(arguments, [&](const std::string& name) {
    for (const CLI::App* place : places)
      if (const CLI::Option* option = place->get_option_no_throw(name))
        return option->get_items_expected_min() > 0 ? FlagUse::kTakesValue : FlagUse::kSwitch;
    return FlagUse::kUnknown;
  });
}

/// One line; CLI11's own words for a flag given twice need some thought.
std::string UsageMessage(const CLI::App* /*app*/, const CLI::Error& error) {
  std::string text = error.what();
  constexpr std::string_view kTwice = ": At Most 1 required but received ";
  if (const size_t at = text.find(kTwice); at != std::string::npos)
    text.replace(at, kTwice.size(), " may be given once, but it is given this often: ");
  return fmt::format("tessera: {}; --help lists what is expected\n",
                     formats::Printable(text, 2000));
}

/// An empty text is an unset variable of a script more often than a wish, and where it means "not
/// given" the verb would do something else than asked. What people say may be empty.
void RefuseEmptyTexts(CLI::App& app) {
  constexpr std::array<std::string_view, 2> kMayBeEmpty = {"--prompt", "--system"};
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    RefuseEmptyTexts(*verb);
    for (CLI::Option* option : verb->get_options()) {
      const bool is_text = option->get_type_name().starts_with("TEXT");
      if (is_text && std::ranges::find(kMayBeEmpty, option->get_name()) == kMayBeEmpty.end())
        option->check(NotEmpty());
    }
  }
}

/// Left alone, glibc raises what it keeps of freed memory to twice the largest block that was ever
/// freed, in the arena of each thread, and malloc_trim does not reach the ends of those: a server
/// that packed its own weights carried 8 MB of the packers' for its life.
void LimitKeptMemory() {
#ifdef __GLIBC__
  constexpr int kBytes = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kBytes);
  ::mallopt(M_TRIM_THRESHOLD, kBytes);
#endif
}

int Main(int argc, char** argv) {
  LimitKeptMemory();
  ReserveStandardStreams();
  InstallMappingGuard();
  InstallDraftGuard();
  // A client or pipe that goes away is an error of that write, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ,
              SIG_IGN);  // A limit of file size is an error of the write, like a full disk.
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (argc > 0 && std::filesystem::path(argv[0]).filename() == "shark-compile")
    arguments.insert(arguments.begin(), "compile");
  auto expanded = ExpandFlagfiles(arguments);
  if (!expanded.has_value()) {
    WriteError(expanded.error().ToString());
    return kUsageError;
  }

  Context context{.arguments = *expanded};
  CLI::App app("Tessera: from a model repository to a running LLM endpoint.", "tessera");
  app.formatter(MakeHelpFormatter());
  app.set_version_flag("--version", "tessera " TESSERA_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  std::string level;
  app.add_option("--log-level", level,
                 "What is logged to stderr (default: warn; serve: info, a line for each request)")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  std::string format = "text";
  app.add_option("--log-format", format,
                 "json: all of stderr is JSON, an object a line; for programs that collect logs")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.failure_message(UsageMessage);
  app.footer("Every verb: tessera VERB --help. Flags from a file: --flagfile=F.");
  app.parse_complete_callback([&] {
    if (level.empty()) level = app.got_subcommand("serve") ? "info" : "warn";
    TESSERA_CHECK(
        log::SetUp(level, format == "json" ? log::Format::kJson : log::Format::kText).ok());
  });
  AddRun(&app, &context);
  AddServe(&app, &context);
  AddGateway(&app, &context);
  AddEndpoints(&app, &context);
  AddCompletions(&app, &context);
  AddKey(&app, &context);
  AddCompile(&app, &context);
  AddPull(&app, &context);
  AddCache(&app, &context);
  AddPlan(&app, &context);
  AddModels(&app, &context);
  AddInspect(&app, &context);
  AddTokenize(&app, &context);
  AddBench(&app, &context);
  AddBenchmarkModule(&app, &context);
  AddPerplexity(&app, &context);
  AddDoctor(&app, &context);
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    GroupOptions(verb);

  RefuseEmptyTexts(app);
  if (const auto foreign = ForeignFlag(app, *expanded)) {
    WriteError(*foreign);
    return kUsageError;
  }
  std::vector<std::string> reversed(expanded->rbegin(), expanded->rend());  // CLI11 pops the back.
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    app.exit(error);
    if (asked && !std::cout.flush()) {
      WriteError("the output could not be written to stdout");
      return 1;
    }
    return asked ? 0 : kUsageError;
  }
  return context.exit_code;
}

}  // namespace
}  // namespace tessera::cli

int main(int argc, char** argv) {
  return tessera::cli::Main(argc, argv);
}
