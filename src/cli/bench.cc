// SPDX-License-Identifier: Apache-2.0
//
// tessera bench: speed of a model on this machine, with the definitions of llama-bench (pp = prompt
// processing of N tokens, logits for the last one only; tg = N single-token steps from depth d) and
// of llama-batched-bench (B sequences in every step). Tokenising and sampling are not counted. One
// warm-up run, then `-r` counted ones.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/loaded_model.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"

namespace tessera::cli {
namespace {

struct Options {
  LoadOptions load;
  std::vector<int64_t> prompts = {512};
  std::vector<int64_t> generations = {128};
  std::vector<int64_t> depths = {0};
  std::vector<int64_t> batches = {1};
  int repetitions = 5;
  bool json = false;
};

/// One cell of the grid: tokens per sequence, of which kind.
struct Case {
  bool is_prompt = true;
  int64_t tokens = 0;
  int64_t depth = 0;
  int64_t batch = 1;

  std::string Name() const {
    std::string name = fmt::format("{}{}", is_prompt ? "pp" : "tg", tokens);
    if (depth > 0) name += fmt::format(" @ d{}", depth);
    if (batch > 1) name += fmt::format(" x {}", batch);
    return name;
  }
};

/// The sequences of one run: pseudo-random tokens, pages dealt out in order.
class Sequences {
 public:
  Sequences(runtime::Session* session, int64_t batch, int64_t length)
      : session_(session), tokens_(static_cast<size_t>(length)) {
    const runtime::ModelShape& shape = session->shape();
    Random random(42);
    for (int32_t& token : tokens_)
      token = static_cast<int32_t>(random.Below(static_cast<uint64_t>(shape.vocab_size)));
    const int64_t pages = (length + shape.page_tokens - 1) / shape.page_tokens;
    for (int64_t i = 0; i < batch; ++i) {
      std::vector<runtime::PageId> own(static_cast<size_t>(pages));
      std::iota(own.begin(), own.end(), static_cast<runtime::PageId>(i * pages));
      pages_.push_back(std::move(own));
    }
  }

  /// Feeds positions [begin, end) of every sequence in steps of at most max_rows tokens; logits for
  /// the last position only.
  Status Prefill(int64_t begin, int64_t end) {
    const int64_t per_step = session_->shape().max_rows;
    for (const auto& pages : pages_)
      for (int64_t at = begin; at < end; at += per_step) {
        const int64_t rows = std::min(per_step, end - at);
        const bool last = at + rows == end;
        const runtime::Chunk chunk{
            Tokens(at, rows), at, pages,
            last ? runtime::Chunk::Logits::kLast : runtime::Chunk::Logits::kNone};
        TESSERA_RETURN_IF_ERROR(StatusOf(session_->Step({&chunk, 1})));
      }
    return {};
  }

  /// One step per position, all sequences in it.
  Status Decode(int64_t begin, int64_t end) {
    std::vector<runtime::Chunk> chunks(pages_.size());
    for (int64_t at = begin; at < end; ++at) {
      for (size_t i = 0; i < pages_.size(); ++i)
        chunks[i] = {Tokens(at, 1), at, pages_[i], runtime::Chunk::Logits::kLast};
      TESSERA_RETURN_IF_ERROR(StatusOf(session_->Step(chunks)));
    }
    return {};
  }

 private:
  std::span<const int32_t> Tokens(int64_t at, int64_t count) const {
    return std::span<const int32_t>(tokens_).subspan(static_cast<size_t>(at),
                                                     static_cast<size_t>(count));
  }

  runtime::Session* session_;
  std::vector<int32_t> tokens_;
  std::vector<std::vector<runtime::PageId>> pages_;
};

struct Figures {
  std::vector<double> tokens_per_second;

  double Mean() const {
    return std::accumulate(tokens_per_second.begin(), tokens_per_second.end(), 0.0) /
           static_cast<double>(tokens_per_second.size());
  }
  double Median() const {
    std::vector<double> sorted = tokens_per_second;
    std::sort(sorted.begin(), sorted.end());
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  double Deviation() const {
    if (tokens_per_second.size() < 2) return 0;
    const double mean = Mean();
    double sum = 0;
    for (double value : tokens_per_second) sum += (value - mean) * (value - mean);
    return std::sqrt(sum / static_cast<double>(tokens_per_second.size() - 1));
  }
};

Status RunOnce(Sequences* sequences, const Case& test, double* tokens_per_second) {
  const TimePoint begin = Clock::Real().Now();
  const int64_t end = test.depth + test.tokens;
  TESSERA_RETURN_IF_ERROR(test.is_prompt ? sequences->Prefill(test.depth, end)
                                         : sequences->Decode(test.depth, end));
  const double seconds = Seconds(Clock::Real().Now() - begin);
  *tokens_per_second = static_cast<double>(test.tokens * test.batch) / seconds;
  return {};
}

Result<Figures> Measure(runtime::Session* session, const Case& test, int repetitions) {
  Sequences sequences(session, test.batch, test.depth + test.tokens);
  if (test.depth > 0) TESSERA_RETURN_IF_ERROR(sequences.Prefill(0, test.depth));
  double rate = 0;
  TESSERA_RETURN_IF_ERROR(RunOnce(&sequences, test, &rate));  // Warm-up.
  Figures figures;
  for (int i = 0; i < repetitions; ++i) {
    TESSERA_RETURN_IF_ERROR(RunOnce(&sequences, test, &rate));
    figures.tokens_per_second.push_back(rate);
  }
  return figures;
}

std::vector<Case> Grid(const Options& options) {
  std::vector<Case> grid;
  for (int64_t batch : options.batches)
    for (int64_t depth : options.depths) {
      for (int64_t tokens : options.prompts)
        if (tokens > 0) grid.push_back({true, tokens, depth, batch});
      for (int64_t tokens : options.generations)
        if (tokens > 0) grid.push_back({false, tokens, depth, batch});
    }
  return grid;
}

Status Bench(const Options& options) {
  const std::vector<Case> grid = Grid(options);
  if (grid.empty()) return InvalidArgument("nothing to measure: -p and -n are all 0");
  LoadOptions load = options.load;
  // Sequences take whole pages, of which the bundle knows the size: room for one more each.
  if (load.kv.bytes == 0)
    for (const Case& test : grid)
      load.kv.tokens = std::max(load.kv.tokens,
                                test.batch * (test.depth + test.tokens + load.compile.page_tokens));
  TESSERA_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(load));
  const runtime::ModelShape& shape = model.session->shape();
  json::Array rows;
  if (!options.json)
    fmt::print("| model | test | tok/s median | mean | sd |\n|---|---|---:|---:|---:|\n");
  for (const Case& test : grid) {
    if (test.depth + test.tokens > shape.max_seq_len)
      return InvalidArgument(fmt::format("{} needs {} positions, the model has {}", test.Name(),
                                         test.depth + test.tokens, shape.max_seq_len));
    const int64_t pages = test.batch * ((test.depth + test.tokens - 1) / shape.page_tokens + 1);
    if (pages > shape.page_count)
      return InvalidArgument(
          fmt::format("{} needs {} pages of KV memory, there are {}: raise --kv-memory to {} bytes",
                      test.Name(), pages, shape.page_count,
                      pages * shape.page_tokens * shape.kv_bytes_per_token));
    TESSERA_ASSIGN_OR_RETURN(const Figures figures,
                             Measure(model.session.get(), test, options.repetitions));
    if (!options.json) {
      fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} |\n", model.name, test.Name(),
                 figures.Median(), figures.Mean(), figures.Deviation());
      std::fflush(stdout);
    }
    json::Array samples(figures.tokens_per_second.begin(), figures.tokens_per_second.end());
    rows.push_back({{"model", model.name},
                    {"test", test.Name()},
                    {"kind", test.is_prompt ? "pp" : "tg"},
                    {"tokens", test.tokens},
                    {"depth", test.depth},
                    {"batch", test.batch},
                    {"tokens_per_second_median", figures.Median()},
                    {"tokens_per_second_mean", figures.Mean()},
                    {"tokens_per_second_sd", figures.Deviation()},
                    {"samples", std::move(samples)}});
  }
  if (options.json) fmt::print("{}", json::SerializePretty(rows));
  return {};
}

}  // namespace

void AddBench(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "bench", "Speed: prompt processing and generation, over depths and batches");
  AddLoadOptions(verb, &options->load);
  verb->add_option("-p,--n-prompt", options->prompts, "Prompt lengths (0 = none)")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("-n,--n-gen", options->generations, "Tokens to generate (0 = none)")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("-d,--n-depth", options->depths, "Positions already in the context")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("-b,--batch", options->batches, "Sequences at once")
      ->delimiter(',')
      ->check(AtLeast(1))
      ->capture_default_str();
  verb->add_option("-r,--repetitions", options->repetitions, "Counted runs of each")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "Figures as JSON on stdout");
  verb->callback([options, context] { RunVerb(context, [&] { return Bench(*options); }); });
}

}  // namespace tessera::cli
