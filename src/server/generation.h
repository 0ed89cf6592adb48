// SPDX-License-Identifier: Apache-2.0
//
// Generation: the engine requests of one HTTP call (prompts times n), followed together. Events of
// the engine are taken to the task thread, turned to text there and handed to a listener. It is the
// only place where engine and answers meet.
//
// Life: Start submits all choices or none; the listener then hears, on the task thread, any number
// of OnDelta, OnChoiceEnd once for each choice, and OnDone or OnError once at the very end. The
// engine has counted a choice and freed its pages before OnChoiceEnd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/output_processor.h"
#include "server/generation_facts.h"
#include "server/request_registry.h"
#include "server/serving_stats.h"
#include "server/task_thread.h"
#include "text/grammar.h"
#include "text/reasoning_parser.h"

namespace tessera::server {

/// Last tokens of a prompt that may change how the answer's first token is spelled: what an
/// OutputProcessor is given of it.
inline constexpr size_t kPromptTail = 12;

struct ChoiceSpec {
  engine::Request request;  // Without its sink.
  std::unique_ptr<engine::OutputProcessor> processor;
  size_t prompt = 0;  // Which of the call's prompts, counted from 0 without a gap.
  /// It gets the next best beam of the request before it, and its own request is not used.
  bool is_next_beam = false;
  /// What request.constraint came from: the finished answer is held against it. Null: nothing.
  std::shared_ptr<const text::Grammar> grammar = nullptr;
  /// Takes off what stands before the text that has this form; has read nothing.
  std::optional<text::ReasoningParser> thoughts = std::nullopt;
  /// The client may have it cut anywhere (stop strings, stop tokens).
  bool may_be_cut = false;
  /// As the client asked; its key decides otherwise (access/admission.h), and on request.client.
  std::optional<int32_t> priority = std::nullopt;
};

struct GenerationTotals {
  int64_t completion_tokens = 0;
  /// Prompt tokens that no choice of the prompt had to compute, over all prompts.
  int64_t cached_tokens = 0;
  engine::CacheMiss cache_miss;  // Of a single prompt; of several: none.
  /// By choice: the stop string that ended it; empty when none did.
  std::vector<std::string> stop_strings;
};

/// Ends a generation that is not over as failed: its listener hears OnError. False when it was
/// over. Task thread; may outlive the generation.
using FailGeneration = std::function<bool(const Status&)>;

class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  /// Once, before all others and before anything is submitted, on the thread that starts it.
  virtual void OnStart(FailGeneration /*fail*/) {}
  /// While the choice's prompt is computed, if its request asked for it.
  virtual void OnPrefill(size_t /*choice*/, const engine::PrefillProgress& /*progress*/) {}
  /// Instead of deltas, if its request asked for it: the pooled hidden states of its prompt.
  virtual void OnEmbedding(size_t /*choice*/, std::vector<float> /*pooled*/) {}
  /// Before the choice's first delta, if its request asked for it.
  virtual void OnPrompt(size_t /*choice*/, engine::PromptLogprobs /*logprobs*/) {}
  virtual void OnDelta(size_t choice, engine::OutputDelta delta) = 0;
  /// Asked after each OnDelta: whether the choice has all that it may have, so that it ends.
  virtual bool IsComplete(size_t /*choice*/) const { return false; }
  /// Just before OnChoiceEnd, if its request asked for logprobs: their mean over the tokens.
  virtual void OnChoiceScore(size_t /*choice*/, double /*mean_logprob*/) {}
  virtual void OnChoiceEnd(size_t choice, engine::FinishReason reason) = 0;
  virtual void OnDone(const GenerationTotals& totals) = 0;
  /// A choice failed or was cancelled; the others were cancelled with it. kCancelled when a client
  /// asked for that, kUnavailable when the server shuts down.
  virtual void OnError(const Status& status) = 0;
};

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  /// What it works with: all outlive it.
  struct Setting {
    engine::Engine* engine;
    TaskThread* tasks;
    RequestRegistry* registry;
    /// Hears what there is to count, on the task thread, just before OnDone or OnError; may be
    /// null.
    std::function<void(const GenerationFacts&)> on_facts = {};
    ServingStats* stats = nullptr;  // May be null; with it goes
    const Clock* clock = nullptr;
  };
  /// While it lasts, the registry knows it by `names`, as its client's. On error nothing was
  /// submitted and the listener hears nothing.
  static Result<std::shared_ptr<Generation>> Start(const Setting& setting,
                                                   std::vector<std::string> names,
                                                   std::vector<ChoiceSpec> choices,
                                                   std::unique_ptr<GenerationListener> listener);
  /// Ends all choices; the listener hears `why` unless it was over. Any thread, any number of
  /// times, the first counts.
  void Cancel(Status why);

  Generation(const Setting& setting, std::unique_ptr<GenerationListener> listener);
  ~Generation();

 private:
  class ChoiceSink;
  struct Choice {
    std::unique_ptr<engine::OutputProcessor> processor;
    size_t prompt = 0;
    bool is_over = false;
    bool is_complete = false;  // By its stop string, or because the listener says so.
  };
  /// What the prefix cache had of a prompt for the choice that found least.
  struct PromptCache {
    bool is_known = false;
    int64_t tokens = 0;
    engine::CacheMiss miss;
  };

  Status Submit(std::vector<ChoiceSpec> specs);
  void HandlePrefill(size_t choice, const engine::PrefillProgress& progress);
  void HandleEmbedding(size_t choice, std::vector<float> pooled);
  void HandlePrompt(size_t choice, engine::PromptLogprobs logprobs);
  void Register(std::vector<std::string> names, engine::ClientId owner);
  void HandleToken(size_t choice, engine::TokenOutput token);
  void HandleFinish(size_t choice, engine::Finish finish);
  void Deliver(size_t choice, Result<engine::OutputDelta> delta);
  void CountCached(size_t prompt, const engine::Finish& finish);
  void Fail(const Status& status);
  void ReportFacts();
  void CountEnd(const engine::Finish& finish);
  void CancelInEngine();
  Status CauseOf(const Status& status);
  engine::RequestId IdOf(size_t choice);

  const Setting setting_;
  const std::unique_ptr<GenerationListener> listener_;
  RequestRegistry::Key registered_ = 0;  // Set before anything is submitted.

  std::mutex mutex_;                    // Guards the next three; held while ids are being made.
  std::vector<engine::RequestId> ids_;  // Of the requests.
  std::optional<Status> cancelled_;     // Why,
  TimePoint cancelled_at_{};            // and when.

  // Task thread only, once submitted.
  std::vector<Choice> choices_;
  std::vector<size_t> request_of_;  // [choices]: which of ids_.
  std::vector<PromptCache> prompts_;
  size_t open_ = 0;
  bool failed_ = false;
  GenerationTotals totals_;
  GenerationFacts facts_;
};

}  // namespace tessera::server
