// SPDX-License-Identifier: Apache-2.0
//
// tessera run MODEL: one answer (-p), or a chat with history. Only the answer goes to stdout.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>

#include "cli/bounded_lines.h"
#include "cli/generation.h"
#include "cli/limits.h"
#include "cli/loaded_model.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/random.h"
#include "engine/sampling_defaults.h"
#include "text/chat_prompt.h"

namespace tessera::cli {
namespace {

// Where neither the user nor the repository says how to sample, a chat reads best a little cooled.
constexpr double kChatTemperature = 0.7;
constexpr double kChatTopP = 0.95;
// As shells report a program that SIGINT ended: scripts must not take the cut answer for a whole
// one.
constexpr int kInterruptedExit = 128 + SIGINT;

struct Options {
  LoadOptions load;
  std::string prompt;
  std::string system;
  bool raw = false;
  int64_t max_tokens = 0;             // 0: until the model ends or the context is full.
  engine::SamplingDefaults sampling;  // The flags that were given.
  std::string seed = std::string(kDrawnSeed);
};

/// Lines from the terminal or a pipe.
class LineReader {
 public:
  /// Nothing at the end of stdin. The text is valid until the next call.
  std::optional<BoundedLines::Line> Read(InterruptFlag* interrupt) {
    for (;;) {
      // A terminal hands over whole lines, so stdin's buffer is empty here.
      if (is_terminal_ && !interrupt->WaitForInput(STDIN_FILENO)) {
        if (interrupt->Take()) Note("\n(/exit or Ctrl-D ends the chat)\n> ");
        continue;
      }
      errno = 0;
      if (const auto line = lines_.Next()) return line;
      if (errno != EINTR) return std::nullopt;
      std::clearerr(stdin);
    }
  }

 private:
  const bool is_terminal_ = ::isatty(STDIN_FILENO) == 1;
  BoundedLines lines_{stdin, kMaxChatLineBytes};
};

json::Value Message(std::string_view role, std::string_view content) {
  return json::Object{{"role", role}, {"content", content}};
}

class Runner {
 public:
  Runner(const Options& options, LoadedModel model)
      : options_(options), model_(std::move(model)), specials_(*model_.tokenizer) {}

  Status Start() {
    TESSERA_ASSIGN_OR_RETURN(
        engine_,
        engine::Engine::Start(std::move(model_.session), {.prove_session = false}, Clock::Real()));
    ChooseSampling();
    ResetHistory();
    return {};
  }

  /// -p: one answer.
  Result<Answer> Once() {
    if (options_.raw) {
      TESSERA_ASSIGN_OR_RETURN(auto ids, model_.tokenizer->Encode(options_.prompt, {}));
      return Print(std::move(ids));
    }
    return Say(options_.prompt);
  }

  Status Chat() {
    const bool prompting = ::isatty(STDIN_FILENO) == 1;
    LineReader lines;
    if (prompting)
      Note("{}: /help lists commands, Ctrl-C stops an answer, Ctrl-D ends\n", model_.name);
    for (;;) {
      if (prompting) Note("> ");
      const auto line = lines.Read(&interrupt_);
      if (!line.has_value() || line->text == "/exit" || line->text == "/bye") break;
      if (!line->too_long && (line->text.empty() || Command(line->text))) continue;
      if (model_.publication != nullptr && model_.publication->HasFailed())
        return model_.publication->Wait();
      (void)interrupt_.Take();  // One that came as the last answer ended must not stop the next.
      const Status status = line->too_long ? TooLong(*line) : Turn(line->text);
      if (status.ok()) continue;
      // A chat goes on after a refused turn (too long, template error); a script must not.
      if (!prompting || std::ferror(stdout) != 0) return status;
      WriteError(status.ToString());
    }
    if (prompting) Note("\n");
    return std::ferror(stdin) == 0 ? Status() : Unavailable("stdin cannot be read");
  }

 private:
  static Status TooLong(const BoundedLines::Line& line) {
    return InvalidArgument(
        fmt::format("the line has {} bytes, at most {}", line.bytes, kMaxChatLineBytes));
  }

  /// A question and its answer; a failed one is taken back from the history.
  Status Turn(std::string_view text) {
    const size_t before = messages_.size();
    const auto answer = Say(text);
    if (!answer.has_value()) messages_.resize(before);
    return StatusOf(answer);
  }

  void ResetHistory() {
    messages_.clear();
    if (!system_.has_value()) system_ = options_.system;
    if (!system_->empty()) messages_.push_back(Message("system", *system_));
  }

  bool Command(std::string_view line) {
    if (!line.starts_with('/')) return false;
    if (line == "/clear") {
      ResetHistory();
      Note("history cleared\n");
    } else if (line.starts_with("/system ")) {
      system_ = line.substr(8);
      ResetHistory();
      Note("system prompt set, history cleared\n");
    } else if (line == "/help") {
      Note(
          "/clear forgets the conversation\n/system TEXT sets the system prompt\n"
          "/exit ends\n");
    } else {
      return false;  // A question may begin with a slash.
    }
    return true;
  }

  void ChooseSampling() {
    // The user's flags, else the repository's recommendation, else a default.
    engine::SamplingParams otherwise;
    if (!options_.raw) {
      otherwise.temperature = kChatTemperature;
      otherwise.top_p = kChatTopP;
    }
    sampling_ =
        engine::WithDefaults(options_.sampling, engine::WithDefaults(model_.sampling, otherwise));
    sampling_.seed = ParseSeed(options_.seed).value_or(SystemRandom64());
    Note("sampling: temperature {}, top_p {}, top_k {}, min_p {}, seed {}\n", sampling_.temperature,
         sampling_.top_p, sampling_.top_k, sampling_.min_p, sampling_.seed);
  }

  Result<Answer> Say(std::string_view text) {
    messages_.push_back(Message("user", text));
    if (model_.chat_template == nullptr)
      return Fail(FailedPrecondition(
          fmt::format("{} has no chat template; use --raw for plain completion, or give one with "
                      "--chat-template FILE",
                      model_.name)));
    text::RenderInput input;
    input.messages = messages_;
    input.vars = model_.template_vars;
    input.now_unix_seconds = Clock::Real().UnixSeconds();
    TESSERA_ASSIGN_OR_RETURN(text::ChatPrompt prompt,
                             text::BuildChatPrompt(std::move(input), *model_.chat_template,
                                                   *model_.tokenizer, specials_));
    TESSERA_ASSIGN_OR_RETURN(Answer answer, Print(std::move(prompt.ids)));
    messages_.push_back(Message("assistant", answer.text));
    return answer;
  }

  Result<Answer> Print(std::vector<text::TokenId> ids) {
    GenerateInput input;
    const int64_t room = engine_->max_sequence_tokens() - static_cast<int64_t>(ids.size());
    input.prompt = std::move(ids);
    input.sampling = sampling_;
    input.stop.max_tokens =
        options_.max_tokens > 0 ? options_.max_tokens : std::max<int64_t>(room, 1);
    input.stop.eos_ids = model_.eos_ids;
    TESSERA_ASSIGN_OR_RETURN(
        Answer answer, Generate(engine_.get(), model_.tokenizer, std::move(input), &interrupt_,
                                [](std::string_view text) { return WriteStdout(text); }));
    TESSERA_RETURN_IF_ERROR(WriteStdout("\n"));
    if (answer.interrupted) {
      Note("(stopped)\n");
    } else {
      const int64_t cached = answer.finish.cached_tokens;
      const int64_t made = answer.finish.generated_tokens;
      // The first token is the prompt's: one alone has no rate.
      Note("{} prompt tokens{} at {:.1f} tok/s, {}{}\n", answer.finish.prompt_tokens,
           cached > 0 ? fmt::format(" ({} cached)", cached) : "", answer.prefill_rate,
           made > 1 ? fmt::format("{} tokens at {:.1f} tok/s", made, answer.decode_rate)
                    : fmt::format("{} token{}", made, made == 1 ? "" : "s"),
           answer.finish.reason == engine::FinishReason::kLength ? ", length limit reached" : "");
    }
    return answer;
  }

  const Options& options_;
  LoadedModel model_;
  const text::SpecialTokens specials_;
  std::unique_ptr<engine::Engine> engine_;
  engine::SamplingParams sampling_;
  std::optional<std::string> system_;
  json::Array messages_;
  InterruptFlag interrupt_;
};

/// One answer, or a chat to its end.
Status Converse(const Options& options, LoadedModel model, bool once, Context* context) {
  Runner runner(options, std::move(model));
  TESSERA_RETURN_IF_ERROR(runner.Start());
  if (!once) return runner.Chat();
  TESSERA_ASSIGN_OR_RETURN(const Answer answer, runner.Once());
  if (answer.interrupted) context->exit_code = kInterruptedExit;
  return {};
}

Status CheckUsage(const Options& options, bool has_prompt, bool has_system) {
  TESSERA_RETURN_IF_ERROR(RequireModel(options.load));
  if (options.raw && !has_prompt)
    return InvalidArgument("--raw completes a prompt: give one with -p");
  if (options.raw && has_system)
    return InvalidArgument(
        "--raw completes the prompt as it is, without chat template: --system would have no "
        "effect; leave one of them out");
  return {};
}

}  // namespace

void AddRun(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand("run", "Answer one prompt (-p), or chat in the terminal");
  AddServingOptions(verb, &options->load);
  verb->add_option("-p,--prompt", options->prompt, "Answer this and end; without, a chat begins");
  verb->add_flag("--raw", options->raw, "Plain completion of the prompt, without chat template");
  verb->add_option("-n,--max-tokens", options->max_tokens,
                   "At most so many tokens (0 = until the model ends)")
      ->check(WholeNumber(0));
  verb->add_option("--system", options->system, "System prompt");
  verb->add_option("--temperature", options->sampling.temperature,
                   "0 = always the most likely token")
      ->check(Number(0, 100));
  verb->add_option("--top-p", options->sampling.top_p, "Smallest set with this probability")
      ->check(Number(0, 1));
  verb->add_option("--top-k", options->sampling.top_k, "The k most likely tokens (0 = all)")
      ->check(WholeNumber(0));
  verb->add_option("--min-p", options->sampling.min_p,
                   "Tokens at least this likely, relative to the best")
      ->check(Number(0, 1));
  verb->add_option("--seed", options->seed,
                   "Same seed, same answer: 0 to 2^64-1 (-1, as without the flag: drawn)")
      ->check(Seed());
  verb->callback([options, context, verb] {
    const bool once = verb->count("--prompt") > 0;
    if (const Status status = CheckUsage(*options, once, verb->count("--system") > 0); !status.ok())
      return ReportUsage(context, status);
    RunVerb(context, [&]() -> Status {
      options->load.may_publish_later = true;
      TESSERA_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(options->load));
      const std::shared_ptr<Publication> publication = model.publication;
      TESSERA_RETURN_IF_ERROR(Converse(*options, std::move(model), once, context));
      // What nobody waits for any more ends with Ctrl-C.
      return publication != nullptr ? publication->Wait() : Status();
    });
  });
}

}  // namespace tessera::cli
