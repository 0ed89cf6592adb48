// SPDX-License-Identifier: Apache-2.0
//
// tessera perplexity MODEL FILE: how well the model predicts a text: mean negative log-likelihood
// and perplexity over windows of the context length, the first half of each window (after the
// first) serving as context only. With --disjoint the windows do not overlap, as in llama.cpp's
// tool: only then figures of both compare. With --ids the file is a JSON array of token ids. With
// --save the per-token distributions' top are stored, and --against compares a run with a stored
// one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/loaded_model.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/validators.h"
#include "cli/verbs.h"

#include "base/file.h"
#include "base/json.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kMaxTextBytes = 256u << 20;

constexpr int64_t kDefaultWindow = 512;

struct Options {
  LoadOptions load;
  std::string file;
  bool ids = false;
  bool disjoint = false;
  bool json = false;
  int64_t window = kDefaultWindow;
  bool window_given = false;
  std::string save;
  std::string against;
};

struct Sums {
  int64_t tokens = 0;
  int64_t right = 0;  // The most likely token was the text's own.
  double nll = 0;
  double nll_squares = 0;
  // Against a reference run.
  int64_t compared = 0;
  double kl = 0;
  int64_t same_top = 0;
};

/// Of the mean, from the spread of the tokens; 0 for a single one.
double NllStandardError(const Sums& sums) {
  if (sums.tokens < 2) return 0;
  const auto count = static_cast<double>(sums.tokens);
  const double spread = sums.nll_squares - sums.nll * sums.nll / count;
  return std::sqrt(std::max(spread, 0.0) / (count - 1) / count);
}

/// log sum exp over one row, in double.
double LogSumExp(std::span<const float> row) {
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float value : row) sum += std::exp(static_cast<double>(value) - top);
  return top + std::log(sum);
}

Result<std::vector<int32_t>> ReadTokens(const Options& options, const text::Tokenizer& tokenizer) {
  TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file, kMaxTextBytes));
  if (!options.ids) return tokenizer.Encode(text, {.add_special = true, .parse_special = false});
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, json::Parse(text, {}, options.file));
  const json::Array* array = value.if_array();
  if (array == nullptr)
    return Fail(
        InvalidArgument(fmt::format("{}: expected a JSON array of token ids", options.file)));
  std::vector<int32_t> ids;
  for (const json::Value& id : *array) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() >= tokenizer.vocab_size())
      return Fail(InvalidArgument(fmt::format("{}: element {} is no token id below {}",
                                              options.file, ids.size(), tokenizer.vocab_size())));
    ids.push_back(static_cast<int32_t>(id.get_int64()));
  }
  return ids;
}

/// Stored distributions: float32 logits rows, one after the other, of the scored positions.
class Reference {
 public:
  static Result<Reference> Open(const std::string& path, int64_t vocab_size) {
    Reference reference;
    TESSERA_ASSIGN_OR_RETURN(reference.file_, MappedFile::Open(path));
    const uint64_t row_bytes = static_cast<uint64_t>(vocab_size) * sizeof(float);
    if (reference.file_->bytes().size() % row_bytes != 0)
      return Fail(InvalidArgument(fmt::format(
          "{} has {} bytes, expected a multiple of {} (rows of {} logits): it is of another model",
          path, reference.file_->bytes().size(), row_bytes, vocab_size)));
    reference.vocab_size_ = vocab_size;
    return reference;
  }
  int64_t rows() const {
    return static_cast<int64_t>(file_->bytes().size() / sizeof(float)) / vocab_size_;
  }
  std::span<const float> Row(int64_t index) const {
    const auto* logits = reinterpret_cast<const float*>(file_->bytes().data());
    return {logits + index * vocab_size_, static_cast<size_t>(vocab_size_)};
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  int64_t vocab_size_ = 0;
};

void Compare(std::span<const float> row, double log_sum, std::span<const float> reference,
             Sums* sums) {
  const double reference_sum = LogSumExp(reference);
  for (size_t i = 0; i < row.size(); ++i) {
    const double log_p = static_cast<double>(reference[i]) - reference_sum;
    const double log_q = static_cast<double>(row[i]) - log_sum;
    sums->kl += std::exp(log_p) * (log_p - log_q);
  }
  sums->same_top += std::max_element(row.begin(), row.end()) - row.begin() ==
                    std::max_element(reference.begin(), reference.end()) - reference.begin();
  ++sums->compared;
}

class Scorer {
 public:
  Scorer(const Options& options, LoadedModel* model) : options_(options), model_(model) {
    const runtime::ModelShape& shape = model->session->shape();
    pages_.resize(
        static_cast<size_t>((options.window + shape.page_tokens - 1) / shape.page_tokens));
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  Result<Sums> Run(std::span<const int32_t> ids) {
    const runtime::ModelShape& shape = model_->session->shape();
    if (!options_.save.empty()) {
      TESSERA_ASSIGN_OR_RETURN(save_, FileWriter::Create(options_.save));
    }
    if (!options_.against.empty()) {
      TESSERA_ASSIGN_OR_RETURN(auto opened, Reference::Open(options_.against, shape.vocab_size));
      reference_ = std::make_unique<Reference>(std::move(opened));
    }
    TESSERA_RETURN_IF_ERROR(options_.disjoint ? Disjoint(ids) : Overlapping(ids));
    if (save_ != nullptr) TESSERA_RETURN_IF_ERROR(save_->Finish());
    if (reference_ != nullptr && reference_->rows() != sums_.tokens)
      return Fail(InvalidArgument(fmt::format("{} holds {} positions, this text has {}",
                                              options_.against, reference_->rows(), sums_.tokens)));
    return sums_;
  }

 private:
  /// The next window begins half a window later, so every scored token but the first half of the
  /// text has at least that much context.
  Status Overlapping(std::span<const int32_t> ids) {
    const auto total = static_cast<int64_t>(ids.size());
    for (int64_t begin = 0, scored = 1; scored < total;) {
      const int64_t end = std::min(total, begin + options_.window);
      TESSERA_RETURN_IF_ERROR(Window(ids, begin, end, scored));
      scored = end;
      begin = end - options_.window / 2;
    }
    return {};
  }

  /// Whole windows one after the other; the second half of each is scored.
  Status Disjoint(std::span<const int32_t> ids) {
    const auto total = static_cast<int64_t>(ids.size());
    const int64_t window = options_.window;
    if (total < window || window < 4)
      return InvalidArgument(fmt::format(
          "{} tokens for windows of {}: expected at least one whole window, of 4 tokens "
          "or more; give a smaller --window or a longer text",
          total, window));
    for (int64_t begin = 0; begin + window <= total; begin += window)
      TESSERA_RETURN_IF_ERROR(Window(ids, begin, begin + window, begin + window / 2 + 1));
    return {};
  }

  /// Feeds [begin, end) and scores the predictions of tokens [scored, end).
  Status Window(std::span<const int32_t> ids, int64_t begin, int64_t end, int64_t scored) {
    const int64_t per_step = std::min<int64_t>(model_->session->shape().max_rows, 64);
    for (int64_t at = begin; at < end; at += per_step) {
      const int64_t rows = std::min(per_step, end - at);
      const runtime::Chunk chunk{ids.subspan(static_cast<size_t>(at), static_cast<size_t>(rows)),
                                 at - begin, pages_, runtime::Chunk::Logits::kAll};
      TESSERA_ASSIGN_OR_RETURN(const std::span<const float> logits,
                               model_->session->Step({&chunk, 1}));
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t next = at + row + 1;
        if (next < scored || next >= end) continue;
        TESSERA_RETURN_IF_ERROR(Score(logits, row, ids[static_cast<size_t>(next)]));
      }
    }
    progress_.Update(static_cast<uint64_t>(end), ids.size());
    return {};
  }

  Status Score(std::span<const float> logits, int64_t row, int32_t next) {
    const auto vocab = static_cast<size_t>(model_->session->shape().vocab_size);
    const auto values = logits.subspan(static_cast<size_t>(row) * vocab, vocab);
    const double log_sum = LogSumExp(values);
    const double nll = log_sum - static_cast<double>(values[static_cast<size_t>(next)]);
    sums_.nll += nll;
    sums_.nll_squares += nll * nll;
    sums_.right += std::max_element(values.begin(), values.end()) - values.begin() == next;
    if (reference_ != nullptr && sums_.tokens < reference_->rows())
      Compare(values, log_sum, reference_->Row(sums_.tokens), &sums_);
    ++sums_.tokens;
    if (save_ == nullptr) return {};
    return save_->Append(std::as_bytes(values));
  }

  const Options& options_;
  LoadedModel* model_;
  std::vector<runtime::PageId> pages_;
  std::unique_ptr<FileWriter> save_;
  std::unique_ptr<Reference> reference_;
  Progress progress_{"scoring"};
  Sums sums_;
};

/// Where the tokenizer begins a text with a token of its own, so does every disjoint window.
Status BeginWindows(const text::Tokenizer& tokenizer, int64_t window, std::vector<int32_t>* ids) {
  constexpr std::string_view kAnyText = "a";
  TESSERA_ASSIGN_OR_RETURN(const auto plain, tokenizer.Encode(kAnyText, {.add_special = false}));
  TESSERA_ASSIGN_OR_RETURN(const auto begun, tokenizer.Encode(kAnyText, {.add_special = true}));
  if (begun.empty() || (!plain.empty() && begun.front() == plain.front())) return {};
  for (size_t at = 0; at < ids->size(); at += static_cast<size_t>(window))
    (*ids)[at] = begun.front();
  return {};
}

/// Makes the window fit: an explicit one must, the default shrinks and says so.
Status FitWindow(const runtime::ModelShape& shape, Options* options, json::Array* warnings) {
  const int64_t room = std::min(shape.max_seq_len, shape.page_count * shape.page_tokens);
  if (options->window <= room) return {};
  const std::string_view limit =
      room == shape.max_seq_len ? "the model's context" : "the KV memory";
  if (options->window_given || room < 2)
    return InvalidArgument(
        fmt::format("--window {} is more than the {} tokens of {}", options->window, room, limit));
  const std::string warning =
      fmt::format("window {} instead of {}: {} has {} tokens", room, options->window, limit, room);
  Note("warning: {}\n", warning);
  warnings->emplace_back(warning);
  options->window = room;
  return {};
}

Status Perplexity(Options options) {
  TESSERA_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(options.load));
  json::Array warnings;
  TESSERA_RETURN_IF_ERROR(FitWindow(model.session->shape(), &options, &warnings));
  TESSERA_ASSIGN_OR_RETURN(std::vector<int32_t> ids, ReadTokens(options, *model.tokenizer));
  if (ids.size() < 2)
    return InvalidArgument(
        fmt::format("{} has {} tokens; at least 2 are needed", options.file, ids.size()));
  if (options.disjoint)
    TESSERA_RETURN_IF_ERROR(BeginWindows(*model.tokenizer, options.window, &ids));
  TESSERA_ASSIGN_OR_RETURN(const Sums sums, Scorer(options, &model).Run(ids));
  const auto count = static_cast<double>(sums.tokens);
  json::Object report = {{"tokens", sums.tokens},
                         {"mean_nll", sums.nll / count},
                         {"nll_standard_error", NllStandardError(sums)},
                         {"perplexity", std::exp(sums.nll / count)},
                         {"top1_accuracy", static_cast<double>(sums.right) / count},
                         {"window", options.window}};
  if (sums.compared > 0) {
    report["mean_kl"] = sums.kl / static_cast<double>(sums.compared);
    report["same_top1"] = static_cast<double>(sums.same_top) / static_cast<double>(sums.compared);
  }
  if (options.json) {
    report["warnings"] = std::move(warnings);
    fmt::print("{}", json::SerializePretty(report));
    return {};
  }
  for (const auto& [key, value] : report)
    fmt::print("{:<14} {}\n", std::string_view(key),
               value.is_int64() ? fmt::to_string(value.get_int64())
                                : fmt::format("{:.5f}", value.to_number<double>()));
  return {};
}

}  // namespace

void AddPerplexity(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "perplexity", "Mean NLL and perplexity of a text; KL against a stored run");
  AddLoadOptions(verb, &options->load);
  verb->add_option("FILE", options->file, "Text to score")->required();
  verb->add_flag("--ids", options->ids, "FILE is a JSON array of token ids");
  verb->add_option("--window", options->window, "Context length of the windows")
      ->check(WholeNumber(2, 1 << 20))
      ->capture_default_str();
  verb->add_flag("--disjoint", options->disjoint,
                 "Windows that do not overlap, the second half of each scored (the definition of "
                 "llama.cpp's llama-perplexity); else every token but the first is scored once");
  verb->add_option("--save", options->save,
                   "Store the logits of every scored position (float32) here");
  verb->add_option("--against", options->against, "Compare with logits stored by --save: mean KL");
  verb->add_flag("--json", options->json, "Figures as JSON on stdout");
  verb->callback([options, context, verb] {
    options->window_given = verb->count("--window") > 0;
    RunVerb(context, [&] { return Perplexity(*options); });
  });
}

}  // namespace tessera::cli
