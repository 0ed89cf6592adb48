// SPDX-License-Identifier: Apache-2.0
//
// Beam search in the engine: each live beam is a sequence of its own, so that batching, chunks,
// preemption and page sharing are those of all sequences. A beam that has reported its next tokens
// waits for the others; then the search (beam_search.h) says who lives, and forks share their
// parent's pages through the prefix cache.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/engine_core.h"

namespace tessera::engine {
namespace {

/// The beam that goes on as `child` with the parent's state, all but its pages.
void CopyState(const Sequence& parent, Sequence* child) {
  child->tokens = parent.tokens;
  child->history = parent.history;
  child->page_keys = parent.page_keys;
  child->page_hashes = parent.page_hashes;
  child->fetch.reset();
  child->scored = parent.scored;
  child->is_prompt_done = parent.is_prompt_done;
  child->shares_prefix = parent.shares_prefix;
  child->cached_tokens = parent.cached_tokens;
  child->cache_miss = parent.cache_miss;
  child->first_scheduled = parent.first_scheduled;
  child->first_token = parent.first_token;
  child->last_token = parent.last_token;
}

}  // namespace

BeamGroup::BeamGroup(RequestId leader, const Request& request)
    : id(leader), search(*request.beams, request.stop), sinks{request.sink} {
  sinks.insert(sinks.end(), request.beams->more_sinks.begin(), request.beams->more_sinks.end());
}

void EngineCore::AdvanceBeams() {
  std::vector<std::shared_ptr<BeamGroup>> groups;
  for (const auto& sequence : sequences_) {
    if (sequence->beams == nullptr) continue;
    if (groups.empty() || groups.back() != sequence->beams) groups.push_back(sequence->beams);
  }
  for (const auto& group : groups) {
    RemoveRetired();  // Those of the group before.
    const std::vector<Sequence*> beams = SequencesOf(*group);
    if (!std::ranges::all_of(beams, [](const Sequence* s) { return s->report.has_value(); }))
      continue;
    std::vector<BeamReport> reports(beams.size());
    for (Sequence* beam : beams) {
      CountBeamToken(beam);
      reports[beam->beam] = *std::exchange(beam->report, std::nullopt);
    }
    const std::vector<size_t> parents = group->search.Advance(reports);
    if (parents.empty()) {
      FinishBeams(group.get());
    } else {
      ForkBeams(group, parents);
    }
  }
  RemoveRetired();
}

std::vector<Sequence*> EngineCore::SequencesOf(const BeamGroup& group) const {
  std::vector<Sequence*> beams;
  for (const auto& sequence : sequences_)
    if (sequence != nullptr && sequence->beams.get() == &group) beams.push_back(sequence.get());
  return beams;
}

void EngineCore::CountBeamToken(Sequence* beam) {
  const TimePoint now = clock_->Now();
  if (!beam->first_token.has_value()) {
    beam->first_token = now;
    stats_.time_to_first_token.Observe(Seconds(now - beam->request.arrival));
  }
  beam->last_token = now;
  fair_queue_.Charge(beam->request.client, FairQueue::kGeneratedToken);
}

void EngineCore::ForkBeams(const std::shared_ptr<BeamGroup>& group,
                           std::span<const size_t> parents) {
  const std::vector<Sequence*> old = SequencesOf(*group);
  std::vector<Sequence*> by_number(old.size());
  for (Sequence* beam : old) by_number[beam->beam] = beam;
  // The first child of a beam goes on in its place, the others are new beams in free ones.
  std::vector<Sequence*> next(parents.size(), nullptr);
  std::vector<bool> lives(old.size(), false);
  for (size_t i = 0; i < parents.size(); ++i) {
    if (lives[parents[i]]) continue;
    lives[parents[i]] = true;
    next[i] = by_number[parents[i]];
  }
  std::vector<Sequence*> free;
  for (size_t number = old.size(); number-- > 0;)
    if (!lives[number]) free.push_back(by_number[number]);
  for (Sequence* beam : free) Unschedule(beam);
  for (size_t i = 0; i < parents.size(); ++i) {
    if (next[i] != nullptr) continue;
    Sequence* parent = by_number[parents[i]];
    // The begun page, too, for the child to copy.
    cache_.Store(std::span(parent->tokens).first(static_cast<size_t>(parent->computed)),
                 /*with_rest=*/true, &parent->pages);
    if (free.empty()) free.push_back(AddBeam(group, parent->request));
    next[i] = free.back();
    free.pop_back();
    CopyState(*parent, next[i]);
  }
  for (size_t i = 0; i < next.size(); ++i) {
    const TokenId token = group->search.live()[i].tokens.back().id;
    next[i]->tokens.push_back(token);
    next[i]->history.Push(token);
    next[i]->beam = i;
  }
  for (auto& sequence : sequences_)  // Fewer beams than before: few tokens were possible.
    if (sequence != nullptr && std::ranges::find(free, sequence.get()) != free.end())
      sequence.reset();
  RemoveRetired();
}

Sequence* EngineCore::AddBeam(const std::shared_ptr<BeamGroup>& group, const Request& request) {
  // Ids of the request's own range, which Add keeps free.
  RequestId id = group->id;
  auto place = std::ranges::lower_bound(sequences_, id, {}, [](const auto& s) { return s->id; });
  for (; place != sequences_.end() && (*place)->id == id; ++place) ++id;
  TESSERA_CHECK(id < group->id + static_cast<RequestId>(request.beams->width));
  auto beam = std::make_unique<Sequence>(id, request);
  beam->beams = group;
  return sequences_.insert(place, std::move(beam))->get();
}

void EngineCore::FinishBeams(BeamGroup* group) {
  const Sequence& any = *SequencesOf(*group).front();
  const std::vector<Beam> results = group->search.TakeResults();
  for (size_t i = 0; i < group->sinks.size(); ++i) {
    const bool exists = i < results.size();
    const bool is_end = exists && results[i].tokens.back().is_end;
    Status status;
    if (!exists)
      status = InvalidArgument("so many different answers are not possible; ask for fewer");
    const FinishReason reason = !exists  ? FinishReason::kError
                                : is_end ? FinishReason::kStop
                                         : FinishReason::kLength;
    Finish finish = any.MakeFinish(reason, std::move(status), -1, clock_->Now());
    finish.generated_tokens = exists ? std::ssize(results[i].tokens) : 0;
    stats_.generation_tokens += finish.generated_tokens;
    if (exists)
      for (const TokenOutput& token : results[i].tokens)
        events_.push_back({group->sinks[i], token});
    CountFinish(any.request, finish, clock_->Now(), &stats_);
    events_.push_back({group->sinks[i], std::move(finish)});
  }
  RemoveBeams(*group, /*is_sound=*/true);
}

void EngineCore::RetireBeams(const BeamGroup& group, FinishReason reason, const Status& status) {
  const Sequence& any = *SequencesOf(group).front();
  for (const std::shared_ptr<Sink>& sink : group.sinks) {
    Finish finish = any.MakeFinish(reason, status, 0, clock_->Now());
    CountFinish(any.request, finish, clock_->Now(), &stats_);
    events_.push_back({sink, std::move(finish)});
  }
  RemoveBeams(group, reason != FinishReason::kError);
}

void EngineCore::RemoveBeams(const BeamGroup& group, bool is_sound) {
  for (Sequence* beam : SequencesOf(group)) {
    // After a failed step nothing more is said of what its pages hold.
    if (is_sound) {
      LeavePages(beam);
    } else {
      cache_.Release(&beam->pages);
    }
  }
  fair_queue_.Leave(SequencesOf(group).front()->request.client);
  // The group may be owned by these alone.
  const std::shared_ptr<BeamGroup> kept = SequencesOf(group).front()->beams;
  for (auto& sequence : sequences_)
    if (sequence != nullptr && sequence->beams == kept) sequence.reset();
}

}  // namespace tessera::engine
