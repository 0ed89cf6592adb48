// SPDX-License-Identifier: Apache-2.0
#include "runtime/segments.h"

#include <algorithm>
#include <set>
#include <variant>

#include "bundle/step_weights.h"
#include "runtime/limits.h"

namespace tessera::runtime {
namespace {

using bundle::BufferIndex;
using bundle::BufferKind;
using bundle::Program;
using bundle::Step;
using bundle::WeightIndex;

template <class Op>
bool Is(const Step& step) {
  return std::holds_alternative<Op>(step.op);
}

struct Access {
  std::vector<BufferIndex> reads;
  std::vector<BufferIndex> writes;
};

/// Of the rows at work; queries, which attention reads as all rows wrote them, do not count.
Access AccessOf(const Step& step) {
  struct Visitor {
    Access operator()(const bundle::EmbedStep& s) const { return {{}, {s.out}}; }
    Access operator()(const bundle::QkvStep& s) const { return {{s.in}, {s.out}}; }
    Access operator()(const bundle::AttentionStep& s) const { return {{}, {s.out}}; }
    Access operator()(const bundle::ProjectStep& s) const {
      return {{s.in, s.residual}, {s.residual}};
    }
    Access operator()(const bundle::GatedStep& s) const { return {{s.in}, {s.out}}; }
    Access operator()(const bundle::HeadStep& s) const { return {{s.in}, {}}; }
  };
  return std::visit(Visitor{}, step.op);
}

/// Calls found(buffer) for what steps [begin, end) read before any of them wrote it.
template <class Found>
void ForEachInput(const Program& program, size_t begin, size_t end, const Found& found) {
  std::set<BufferIndex> written;
  for (size_t i = begin; i < end; ++i) {
    const Access access = AccessOf(program.steps[i]);
    for (const BufferIndex read : access.reads)
      if (!written.contains(read)) found(read);
    written.insert(access.writes.begin(), access.writes.end());
  }
}

bool IsBlocks(const Program& program, BufferIndex index) {
  return program.buffers[static_cast<size_t>(index)].kind != BufferKind::kFloat;
}

/// The step from which on only wanted rows matter: the last attention, unless what follows it needs
/// other rows too; else the end.
size_t FirstWantedOnly(const Program& program) {
  const auto& steps = program.steps;
  size_t last = steps.size();
  for (size_t i = 0; i < steps.size(); ++i)
    if (Is<bundle::AttentionStep>(steps[i])) last = i;
  if (last == steps.size()) return last;
  const auto& attention = std::get<bundle::AttentionStep>(steps[last].op);
  if (attention.in == attention.out) return steps.size();
  for (size_t i = last; i < steps.size(); ++i)
    if (Is<bundle::QkvStep>(steps[i]) || Is<bundle::EmbedStep>(steps[i])) return steps.size();
  bool blocks = false;
  ForEachInput(program, last, steps.size(),
               [&](BufferIndex read) { blocks = blocks || IsBlocks(program, read); });
  return blocks ? steps.size() : last;
}

}  // namespace

std::vector<Segment> SegmentsOf(const Program& program) {
  const auto& steps = program.steps;
  const size_t wanted_from = FirstWantedOnly(program);
  std::vector<Segment> segments;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool begins = Is<bundle::AttentionStep>(steps[i]) || Is<bundle::HeadStep>(steps[i]);
    if (i == 0 || begins) segments.push_back({i, i, i >= wanted_from, false});
    segments.back().end = i + 1;
  }
  for (Segment& segment : segments) {
    segment.strips = !Is<bundle::HeadStep>(steps[segment.begin]);
    ForEachInput(program, segment.begin, segment.end, [&](BufferIndex read) {
      if (IsBlocks(program, read)) segment.strips = false;
    });
  }
  return segments;
}

LargestSegment LargestSegmentOf(const Program& program) {
  LargestSegment largest;
  for (const Segment& segment : SegmentsOf(program)) {
    std::set<WeightIndex> weights;  // Joined matrices serve several projections.
    for (size_t i = segment.begin; i < segment.end; ++i)
      if (!Is<bundle::EmbedStep>(program.steps[i]))
        bundle::ForEachWeight(&program.steps[i],
                              [&](const WeightIndex* index) { weights.insert(*index); });
    LargestSegment sum;
    for (const WeightIndex index : weights) {
      const bundle::Weight& weight = program.weights[static_cast<size_t>(index)];
      sum.bytes += static_cast<uint64_t>(weight.bytes);
      sum.elements += static_cast<uint64_t>(weight.n) * static_cast<uint64_t>(weight.k);
    }
    if (sum.bytes > largest.bytes) largest = sum;
  }
  return largest;
}

std::vector<BufferIndex> GatheredBuffers(const Program& program,
                                         const std::vector<Segment>& segments) {
  const auto first = std::find_if(segments.begin(), segments.end(),
                                  [](const Segment& segment) { return segment.wanted_only; });
  if (first == segments.end()) return {};
  std::set<BufferIndex> gathered;
  ForEachInput(program, first->begin, program.steps.size(),
               [&](BufferIndex read) { gathered.insert(read); });
  return {gathered.begin(), gathered.end()};
}

StripPolicy StripPolicyOf(const Program& program) {
  std::set<WeightIndex> weights;
  for (const Step& step : program.steps) {
    if (const auto* qkv = std::get_if<bundle::QkvStep>(&step.op)) {
      weights.insert({qkv->q.weight, qkv->k.weight, qkv->v.weight});
    } else if (const auto* project = std::get_if<bundle::ProjectStep>(&step.op)) {
      weights.insert(project->weight);
    } else if (const auto* gated = std::get_if<bundle::GatedStep>(&step.op)) {
      weights.insert(gated->gate);
      if (gated->up) weights.insert(*gated->up);
    }
  }
  int64_t bytes = 0, macs = 0;
  for (const WeightIndex index : weights) {
    const bundle::Weight& weight = program.weights[static_cast<size_t>(index)];
    bytes += weight.bytes;
    macs += weight.n * weight.k;
  }
  const int64_t layers = std::max<int64_t>(program.dims.layers, 1);
  return {bytes / layers <= kStripWeightBytes, macs / layers};
}

}  // namespace tessera::runtime
