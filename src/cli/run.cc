// SPDX-License-Identifier: Apache-2.0
//
// tessera run MODEL: one answer (-p), or a chat with history. Only the answer goes to stdout.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "cli/generation.h"
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
  std::optional<uint64_t> seed;
};

/// A line from the terminal or pipe; nothing at its end.
class LineReader {
 public:
  ~LineReader() { std::free(buffer_); }
  LineReader() = default;
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  std::optional<std::string> Read(InterruptFlag* interrupt) {
    for (;;) {
      errno = 0;
      const ssize_t size = ::getline(&buffer_, &capacity_, stdin);
      if (size >= 0) {
        std::string line(buffer_, static_cast<size_t>(size));
        while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
        return line;
      }
      if (errno != EINTR || !interrupt->Take()) return std::nullopt;
      std::clearerr(stdin);
      fmt::print(stderr, "\n(/exit or Ctrl-D ends the chat)\n> ");
    }
  }

 private:
  char* buffer_ = nullptr;
  size_t capacity_ = 0;
};

json::Value Message(std::string_view role, std::string_view content) {
  return json::Object{{"role", role}, {"content", content}};
}

class Runner {
 public:
  Runner(const Options& options, LoadedModel model)
      : options_(options), model_(std::move(model)), specials_(*model_.tokenizer) {}

  Status Start() {
    TESSERA_ASSIGN_OR_RETURN(engine_,
                             engine::Engine::Start(std::move(model_.session), {}, Clock::Real()));
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
      fmt::print(stderr, "{}: /help lists commands, Ctrl-C stops an answer, Ctrl-D ends\n",
                 model_.name);
    for (;;) {
      if (prompting) fmt::print(stderr, "> ");
      const auto line = lines.Read(&interrupt_);
      if (!line.has_value() || *line == "/exit" || *line == "/bye") break;
      if (line->empty() || Command(*line)) continue;
      (void)interrupt_.Take();  // One that came as the last answer ended must not stop the next.
      const auto answer = Say(*line);
      if (answer.has_value()) continue;
      // A chat goes on after a refused turn (too long, template error): the turn is taken back.
      fmt::print(stderr, "tessera: {}\n", answer.error().ToString());
      messages_.pop_back();
      if (!prompting) return answer.error();
    }
    if (prompting) fmt::print(stderr, "\n");
    return {};
  }

 private:
  void ResetHistory() {
    messages_.clear();
    if (!system_.has_value()) system_ = options_.system;
    if (!system_->empty()) messages_.push_back(Message("system", *system_));
  }

  bool Command(const std::string& line) {
    if (!line.starts_with('/')) return false;
    if (line == "/clear") {
      ResetHistory();
      fmt::print(stderr, "history cleared\n");
    } else if (line.starts_with("/system ")) {
      system_ = line.substr(8);
      ResetHistory();
      fmt::print(stderr, "system prompt set, history cleared\n");
    } else if (line == "/help") {
      fmt::print(stderr,
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
    sampling_.seed = options_.seed.value_or(SystemRandom64());
    fmt::print(stderr, "sampling: temperature {}, top_p {}, top_k {}, min_p {}, seed {}\n",
               sampling_.temperature, sampling_.top_p, sampling_.top_k, sampling_.min_p,
               sampling_.seed);
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
                                [](std::string_view text) {
                                  std::fwrite(text.data(), 1, text.size(), stdout);
                                  std::fflush(stdout);
                                }));
    std::fputc('\n', stdout);
    std::fflush(stdout);
    if (answer.interrupted) {
      fmt::print(stderr, "(stopped)\n");
    } else {
      fmt::print(
          stderr, "{} prompt tokens at {:.1f} tok/s, {} tokens at {:.1f} tok/s{}\n",
          answer.finish.prompt_tokens, answer.prefill_rate, answer.finish.generated_tokens,
          answer.decode_rate,
          answer.finish.reason == engine::FinishReason::kLength ? ", length limit reached" : "");
    }
    if (std::ferror(stdout) != 0)
      return Fail(Unavailable("the answer cannot be written to stdout"));
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

}  // namespace

void AddRun(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand("run", "Answer one prompt (-p), or chat in the terminal");
  AddServingOptions(verb, &options->load);
  verb->add_option("-p,--prompt", options->prompt, "Answer this and end; without, a chat begins");
  verb->add_flag("--raw", options->raw, "Plain completion of the prompt, without chat template");
  verb->add_option("-n,--max-tokens", options->max_tokens,
                   "At most so many tokens (0 = until the model ends)")
      ->check(AtLeast(0));
  verb->add_option("--system", options->system, "System prompt");
  verb->add_option("--temperature", options->sampling.temperature,
                   "0 = always the most likely token")
      ->check(CLI::Range(0.0, 100.0));
  verb->add_option("--top-p", options->sampling.top_p, "Smallest set with this probability")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--top-k", options->sampling.top_k, "The k most likely tokens (0 = all)")
      ->check(AtLeast(0));
  verb->add_option("--min-p", options->sampling.min_p,
                   "Tokens at least this likely, relative to the best")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--seed", options->seed, "Same seed, same answer");
  verb->callback([options, context, verb] {
    if (const Status status = RequireModel(options->load); !status.ok())
      return ReportUsage(context, status);
    RunVerb(context, [&]() -> Status {
      const bool once = verb->count("--prompt") > 0;
      if (options->raw && !once)
        return InvalidArgument("--raw completes a prompt: give one with -p");
      TESSERA_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(options->load));
      Runner runner(*options, std::move(model));
      TESSERA_RETURN_IF_ERROR(runner.Start());
      if (!once) return runner.Chat();
      TESSERA_ASSIGN_OR_RETURN(const Answer answer, runner.Once());
      if (answer.interrupted) context->exit_code = kInterruptedExit;
      return {};
    });
  });
}

}  // namespace tessera::cli
