// SPDX-License-Identifier: Apache-2.0
//
// tessera tokenize, detokenize, render: JSON lines on stdin, one JSON line out for each, in order.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/bounded_lines.h"
#include "cli/model_argument.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "cli/verbs.h"

#include "base/clock.h"
#include "model/text_sources.h"
#include "text/json_lines.h"
#include "text/limits.h"
#include "text/render_lines.h"

namespace tessera::cli {
namespace {

struct Options {
  HubOptions hub;
  std::string model;
  std::string file;  // --tokenizer or --template
  bool no_special = false;
  bool no_parse_special = false;
  bool keep_special = false;
};

/// Answers every line of stdin; empty lines are skipped. Output is flushed when input pauses, so
/// that a program on the other side may wait for each answer.
Status AnswerLines(const std::function<std::string(std::string_view)>& answer) {
  BoundedLines lines(stdin, text::kMaxJsonLineBytes);
  while (const auto line = lines.Next()) {
    if (line->text.empty() && !line->too_long) continue;
    const std::string text =
        (line->too_long
             ? text::ErrorLine(InvalidArgument(fmt::format("the line has {} bytes, at most {}",
                                                           line->bytes, text::kMaxJsonLineBytes)))
             : answer(line->text)) +
        "\n";
    TESSERA_RETURN_IF_ERROR(WriteStdout(text));  // Nobody may be there to read the next.
  }
  if (std::ferror(stdin) != 0) return Unavailable("stdin cannot be read");
  return {};
}

Status ExactlyOneSource(const Options& options, std::string_view flag) {
  if (options.model.empty() == options.file.empty())
    return InvalidArgument(fmt::format("name the source: either --model MODEL or {} FILE", flag));
  return {};
}

Result<ResolvedModel> Resolve(const Options& options) {
  return ResolveModel(options.model, options.hub, /*cache_dir=*/"", ModelNeed::kHeaders);
}

Result<std::shared_ptr<const text::Tokenizer>> Tokenizer(const Options& options) {
  TESSERA_RETURN_IF_ERROR(ExactlyOneSource(options, "--tokenizer"));
  if (options.model.empty()) return ReadTokenizer(options.file);
  TESSERA_ASSIGN_OR_RETURN(const ResolvedModel model, Resolve(options));
  return ReadTokenizer(model.path);
}

Status Render(const Options& options) {
  TESSERA_RETURN_IF_ERROR(ExactlyOneSource(options, "--template"));
  std::string source;
  if (options.model.empty()) {
    TESSERA_ASSIGN_OR_RETURN(source, model::ReadTemplateFile(options.file));
  } else {
    TESSERA_ASSIGN_OR_RETURN(const ResolvedModel model, Resolve(options));
    TESSERA_ASSIGN_OR_RETURN(source, ReadChatTemplateText(model.path));
  }
  TESSERA_ASSIGN_OR_RETURN(const auto chat_template, text::ChatTemplate::Parse(source));
  const int64_t now = Clock::Real().UnixSeconds();
  return AnswerLines(
      [&](std::string_view line) { return text::RenderLine(*chat_template, line, now); });
}

}  // namespace

void AddTokenize(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  const auto add_tokenizer_source = [&](CLI::App* verb) {
    verb->add_option("--model", options->model, kModelHelp);
    AddHubOptions(verb, &options->hub);
    verb->add_option("--tokenizer", options->file, "A tokenizer.json");
  };

  CLI::App* tokenize = app->add_subcommand("tokenize", R"(JSON lines {"text"} -> {"ids"})");
  add_tokenizer_source(tokenize);
  tokenize->add_flag("--no-special", options->no_special, "Add no BOS and the like");
  tokenize->add_flag("--no-parse-special", options->no_parse_special,
                     "Special tokens written in the text are plain text");
  tokenize->callback([options, context] {
    RunVerb(context, [&]() -> Status {
      TESSERA_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer(*options));
      const text::EncodeOptions encode{.add_special = !options->no_special,
                                       .parse_special = !options->no_parse_special};
      return AnswerLines(
          [&](std::string_view line) { return text::TokenizeLine(*tokenizer, line, encode); });
    });
  });

  CLI::App* detokenize = app->add_subcommand("detokenize", R"(JSON lines {"ids"} -> {"text"})");
  add_tokenizer_source(detokenize);
  detokenize->add_flag("--keep-special", options->keep_special, "Show special tokens as text");
  detokenize->callback([options, context] {
    RunVerb(context, [&]() -> Status {
      TESSERA_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer(*options));
      return AnswerLines([&](std::string_view line) {
        return text::DetokenizeLine(*tokenizer, line, !options->keep_special);
      });
    });
  });

  CLI::App* render = app->add_subcommand(
      "render", R"(JSON lines {"messages","tools"?,...} -> {"text"}: the chat template's prompt)");
  render->add_option("--model", options->model, kModelHelp);
  AddHubOptions(render, &options->hub);
  render->add_option("--template", options->file, "A Jinja template");
  render->callback([options, context] { RunVerb(context, [&] { return Render(*options); }); });
}

}  // namespace tessera::cli
