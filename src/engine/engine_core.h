// SPDX-License-Identifier: Apache-2.0
//
// EngineCore: the engine without its thread. One Step() is one run of the model over a batch of
// sequences. Everything here happens on one thread; engine.h adds the thread and the queue, tests
// drive a core by hand.
//
// Events for sinks are collected during a call and handed over by Deliver(), so that the caller can
// publish statistics first: whoever sees a request finish also sees it counted.
//
// Invariants (CheckIntegrity):
//   1. A page has as many users as there are sequences that hold it; free, idle and used pages are
//      the whole pool. Only pages that are stored in the prefix cache are held by more than one.
//   2. A waiting sequence holds no page and has nothing computed.
//   3. 0 <= computed < tokens, or = while a beam waits for the others; pages held cover `computed`;
//   stored pages end before it.
//   4. At most max_running sequences run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/admission_rate.h"
#include "engine/draft_policy.h"
#include "engine/fair_queue.h"
#include "engine/kv_pool.h"
#include "engine/limits.h"
#include "engine/mask_worker.h"
#include "engine/page_store.h"
#include "engine/prefix_cache.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "engine/stage.h"
#include "engine/stats.h"
#include "engine/step_cost.h"
#include "engine/token_drawer.h"
#include "runtime/session.h"

namespace tessera::engine {

struct CoreOptions {
  int64_t max_running = kMaxRunningDefault;
  int64_t prefix_cache_pages = kPrefixCachePagesDefault;  // As EngineOptions.
  Duration target_itl = kTargetItlDefault;
  Speculation speculation = Speculation::kOff;
  /// Called on another thread when a mask is ready: a stalled core may go on.
  std::function<void()> on_mask_ready = {};
  StageMarker* stage = nullptr;  // Told what a step is at; may be null.
  /// How long a step waits for masks that are late, all of them together.
  Duration mask_patience = kMaskPatienceDefault;
  PageStore* store = nullptr;  // For pages that the prefix cache gives up; may be null.
};

class EngineCore {
 public:
  /// `session`, `clock` and the store must outlive the core.
  EngineCore(runtime::Session* session, const CoreOptions& options, const Clock* clock);

  /// Requires CheckRequest(request) to be ok. The sequence waits for the next step. With beams it
  /// takes the ids [id, id + width).
  void Add(RequestId id, Request request);
  /// Ends a sequence in whatever state it is; its pages are free on return. `kept_tokens` < 0 means
  /// all. No effect on an unknown id.
  void End(RequestId id, FinishReason reason, Status status, int64_t kept_tokens = -1);
  void EndAll(FinishReason reason, const Status& status);

  bool has_work() const { return !sequences_.empty(); }
  /// The last step found nothing to run: all that could waits for masks, or for pages of the store.
  /// Until on_mask_ready, a page that is read, wake_at() or a new command another step would find
  /// the same.
  bool is_stalled() const;
  /// When a stalled core goes on by itself; nothing: not by itself.
  std::optional<TimePoint> wake_at() const;
  /// Schedules, runs the model once, samples, retires what is finished.
  void Step();
  /// Whether BackNextPage has something to do: pages that the next prompts will be the first to
  /// use.
  bool can_back() const;
  /// Has memory found for one of them. For times without work: it can take milliseconds.
  void BackNextPage();
  /// Puts the cached pages into the store, as far as `patience` lasts. Requires no sequence.
  void SpillAll(Duration patience);
  bool has_events() const { return !events_.empty(); }
  /// Hands the collected events to the sinks; returns how many requests finished with them.
  int64_t Deliver();

  const Stats& stats() const { return stats_; }
  void CheckIntegrity() const;

 private:
  struct Embedding {
    std::vector<float> values;  // [hidden_size]
  };
  struct Event {
    std::shared_ptr<Sink> sink;
    std::variant<PrefillProgress, PromptLogprobs, Embedding, TokenOutput, Finish> what;
  };

  /// A sequence that gets its next token from this row of the step's logits.
  struct Drawing {
    size_t index = 0;
    size_t row = 0;   // The first: after its last token.
    size_t rows = 1;  // And after each of its guesses.
  };

  void Enter(Stage stage) const {
    if (options_.stage != nullptr) options_.stage->Enter(stage, clock_->Now());
  }
  void ExpireDeadlines();
  Decision Plan();
  /// Fills order_: who comes first.
  void OrderSequences();
  /// Guesses what follows each decoding sequence, where checking that pays.
  void GuessTokens();
  /// Rows of prompts in a step of `views` in which somebody decodes.
  int64_t PromptRows(std::span<const SequenceView> views);
  void Preempt(std::span<const size_t> victims);
  /// Gives the waiting sequences of `work` the pages that the prefix cache has for them.
  void Admit(std::span<const Work> work);
  void CopyTail(Sequence* sequence);
  StepLoad PrepareChunks(std::span<const Work> work);
  void FailBatch(std::span<const Work> work, const Status& status);
  void Advance(std::span<const Work> work, std::span<const float> logits);
  void ReportPrefill(const Sequence& sequence);
  /// What the rows of one chunk say of the prompt, and its end; true when the sequence has ended.
  bool TakePrompt(Sequence* sequence, std::span<const float> rows, int64_t first_position);
  /// Adds the hidden states of prompt rows, the first at `first_position`, to those pooled.
  void PoolRows(Sequence* sequence, std::span<const float> rows, int64_t first_position);
  void EndPooling(Sequence* sequence);
  /// Logprobs of prompt tokens from the rows before them.
  Status ScorePrompt(Sequence* sequence, std::span<const float> rows, int64_t first_position);
  /// Beam search (engine_core_beams.cc): advances the groups of which all beams have reported.
  void AdvanceBeams();
  void ForkBeams(const std::shared_ptr<BeamGroup>& group, std::span<const size_t> parents);
  Sequence* AddBeam(const std::shared_ptr<BeamGroup>& group, const Request& request);
  void CountBeamToken(Sequence* beam);
  void FinishBeams(BeamGroup* group);
  void RetireBeams(const BeamGroup& group, FinishReason reason, const Status& status);
  void RemoveBeams(const BeamGroup& group, bool is_sound);
  std::vector<Sequence*> SequencesOf(const BeamGroup& group) const;
  /// The prompt is complete: counted and reported once.
  void EndPrompt(Sequence* sequence);
  /// A token for each sequence of drawing_ from its row of the logits, to drawn_.
  void DrawTokens(std::span<const float> logits);
  /// What was drawn for it; true when the sequence has ended.
  bool TakeDrawn(Sequence* sequence, Result<Drawn> drawn);
  bool TakeToken(Sequence* sequence, TokenOutput token);
  void CountToken(Sequence* sequence);
  void Retire(Sequence* sequence, FinishReason reason, Status status, int64_t kept_tokens);
  /// Leaves what the sequence has computed to the prefix cache and gives all its pages back.
  void LeavePages(Sequence* sequence);
  /// And it waits again.
  void Unschedule(Sequence* sequence);
  void RemoveRetired();
  void UpdateGauges();

  // Pages of the store: engine_core_store.cc.
  std::optional<PageSpill> MakeSpill();
  int64_t PageSize() const { return shape_.page_tokens * shape_.kv_bytes_per_token; }
  /// For those that wait: asks for pages that the store has, and takes up those that have come.
  void FetchPages();
  using PageSet = std::unordered_set<PageHash, PageHashHasher>;
  /// Adds what the sequence wants from the store; returns how much of it others wanted already.
  static int64_t NoteComing(const Sequence& sequence, PageSet* coming);
  void BeginFetch(Sequence* sequence);
  void LookInStore(Sequence* sequence);
  /// It is its turn: decides how long it waits.
  void AskFirst(Sequence* sequence);
  void AskForPages(Sequence* sequence);
  /// At most `most`; returns how many were copied.
  int64_t TakeUpPages(Sequence* sequence, int64_t most);
  /// It is admitted: what has not come is computed.
  void EndFetch(Sequence* sequence);

  // Constrained sequences: engine_core_masks.cc.
  /// Ends those that their masks end, and lets those go on whose masks have come.
  void SettleMasks();
  /// Waits a little; true when the sequence has to wait for its mask and its row is lost.
  bool IsMaskLate(Sequence* sequence);
  /// Ends a sequence whose mask has failed or leaves nothing to say; true when it did. Requires a
  /// mask that is ready, or none.
  bool EndByMask(Sequence* sequence);

  runtime::Session* session_;
  const runtime::ModelShape shape_;
  const CoreOptions options_;
  const Clock* clock_;
  Duration spill_patience_{};  // With a full queue of the store: none while serving.
  KvPool pool_;
  PrefixCache cache_;
  runtime::PageId backed_ = 0;        // Pages below are backed or were used.
  std::vector<TokenDrawer> drawers_;  // One a worker of the session.
  Stats stats_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // In order of arrival; null once retired.
  std::vector<size_t> order_;                         // Indices of sequences_: see SequenceView.
  FairQueue fair_queue_;
  AdmissionRate admissions_;
  StepCostModel step_cost_;
  std::vector<runtime::Chunk> chunks_;  // Of the running step.
  std::vector<Drawing> drawing_;
  std::vector<Result<Drawn>> drawn_;  // [drawing_]
  std::vector<Event> events_;
  MaskWorker masks_;
  std::chrono::steady_clock::time_point mask_deadline_;  // Of the running step.
  bool is_stalled_ = false;
};

/// Tokens that one sequence can have at most: the context length or the KV pool, the smaller.
int64_t MaxSequenceTokens(const runtime::ModelShape& shape);
/// kInvalidArgument for what can never run, saying the limit. Any thread.
Status CheckRequest(const Request& request, const runtime::ModelShape& shape);

}  // namespace tessera::engine
