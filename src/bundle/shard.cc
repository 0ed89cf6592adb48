// SPDX-License-Identifier: Apache-2.0
#include "bundle/shard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "kernels/logits.h"
#include "kernels/pack.h"

namespace tessera::bundle {
namespace {

/// Smallest parts that are dealt.
struct Parts {
  int64_t heads = 0;  // Of kv_heads / heads KV heads each.
  int64_t ffn = 0;
  int64_t ffn_columns = 0;
};

Parts PartsOf(const Program& program) {
  Parts parts;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const auto* project = std::get_if<ProjectStep>(&program.steps[i].op);
    if (project == nullptr) continue;
    const Weight& weight = program.weights[static_cast<size_t>(project->weight)];
    const bool after_attention = std::holds_alternative<AttentionStep>(program.steps[i - 1].op);
    int64_t& count = after_attention ? parts.heads : parts.ffn;
    count = std::gcd(count, weight.segments);
    if (!after_attention) parts.ffn_columns = weight.k;
  }
  // A part is one head at the least.
  parts.heads = std::gcd(parts.heads, program.dims.kv_heads);
  return parts;
}

bool Works(const Parts& parts, int64_t ranks, bool allow_uneven) {
  if (ranks == 1) return true;
  if (ranks < 1 || ranks > kMaxRanks || ranks > parts.heads || ranks > parts.ffn) return false;
  return allow_uneven || parts.heads % ranks == 0;
}

Interval Deal(int64_t parts, int64_t rank, int64_t ranks, int64_t size) {
  return {parts * rank / ranks * size, parts * (rank + 1) / ranks * size};
}

std::string ListRanks(const Parts& parts, bool allow_uneven) {
  std::vector<std::string> possible;
  for (int64_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    if (Works(parts, ranks, allow_uneven)) possible.push_back(fmt::format("tp{}", ranks));
  return fmt::format("{}", fmt::join(possible, " or "));
}

int64_t LogitBlocks(const Program& program) {
  return kernels::LogitBlocks(program.dims.vocab_size);
}

Status Odd(std::string what) {
  return Unimplemented(fmt::format("the program cannot be sharded: {}", what));
}

/// Cuts the weights and steps of one rank.
class Cutter {
 public:
  Cutter(const Program& whole, const std::vector<RankShare>& shares, int64_t rank)
      : whole_(whole), shares_(shares), share_(shares[static_cast<size_t>(rank)]) {
    out_.program = whole;
    out_.rank = rank;
    out_.ranks = std::ssize(shares);
    out_.first_kv_head = share_.kv_heads.begin;
    out_.all_kv_heads = whole.dims.kv_heads;
    out_.vocabulary = share_.vocabulary;
    for (const RankShare& each : shares) {
      out_.logit_begins.push_back(each.vocabulary.begin);
      out_.block_begins.push_back(each.vocabulary.begin / kernels::kLogitBlock);
    }
    out_.logit_begins.push_back(whole.dims.vocab_size);
    out_.block_begins.push_back(LogitBlocks(whole));
    out_.slices.resize(whole.weights.size());
    cut_.resize(whole.weights.size());
    Dims& d = out_.program.dims;
    d.kv_heads = share_.kv_heads.size();
    d.heads = d.kv_heads * Group();
  }

  Result<RankProgram> Cut() && {
    for (size_t i = 0; i < whole_.steps.size(); ++i) {
      const Status status =
          std::visit([&](const auto& op) { return CutStep(op, i); }, whole_.steps[i].op);
      TESSERA_RETURN_IF_ERROR(status.WithContext(whole_.steps[i].label));
    }
    for (size_t i = 0; i < whole_.weights.size(); ++i) CutWeight(i);
    return std::move(out_);
  }

 private:
  int64_t Group() const { return whole_.dims.heads / whole_.dims.kv_heads; }
  int64_t HeadDim() const { return whole_.dims.head_dim; }
  int64_t QueryColumns() const { return out_.program.dims.heads * HeadDim(); }
  Interval Queries(const RankShare& share) const {
    const int64_t columns = Group() * HeadDim();
    return {share.kv_heads.begin * columns, share.kv_heads.end * columns};
  }
  Interval Queries() const { return Queries(share_); }
  static Interval From(int64_t row, Interval rows) { return {row + rows.begin, row + rows.end}; }
  Interval KvRows(int64_t stride) const {
    return {share_.kv_heads.begin * stride, share_.kv_heads.end * stride};
  }

  Status Need(WeightIndex index, WeightSlice slice) {
    std::optional<WeightSlice>& cut = cut_[static_cast<size_t>(index)];
    if (cut && *cut != slice)
      return Odd(fmt::format("weight {} is used in two ways",
                             whole_.weights[static_cast<size_t>(index)].entry));
    cut = std::move(slice);
    return {};
  }
  Status Keep(WeightIndex index) { return Need(index, {}); }
  Status KeepNorm(const std::optional<Norm>& norm) { return norm ? Keep(norm->weight) : Status(); }
  Status NeedRows(WeightIndex index, std::vector<Interval> rows) {
    return Need(index, {WeightSlice::Kind::kRows, std::move(rows), {}, {}});
  }

  Status SetColumns(BufferIndex index, int64_t columns) {
    // Every step says it of its buffers; where two disagree, the first has changed it.
    int64_t& now = out_.program.buffers[static_cast<size_t>(index)].columns;
    const int64_t before = whole_.buffers[static_cast<size_t>(index)].columns;
    if (now != before && now != columns) return Odd("a buffer is used in two ways");
    now = columns;
    return {};
  }

  Status CutStep(const EmbedStep& step, size_t) { return Keep(step.table); }

  Status CutStep(const QkvStep& step, size_t at) {
    const int64_t hd = HeadDim();
    TESSERA_RETURN_IF_ERROR(Keep(step.norm.weight));
    TESSERA_RETURN_IF_ERROR(KeepNorm(step.q_norm));
    TESSERA_RETURN_IF_ERROR(KeepNorm(step.k_norm));
    auto& out = std::get<QkvStep>(out_.program.steps[at].op);
    const HeadRows &q = step.q, &k = step.k, &v = step.v;
    const bool joined = q.weight == k.weight && k.weight == v.weight && q.stride == hd &&
                        k.stride == 2 * hd && v.stride == 2 * hd && v.row == k.row + hd;
    if (joined) {
      TESSERA_RETURN_IF_ERROR(
          NeedRows(q.weight, {From(q.row, Queries()), From(k.row, KvRows(2 * hd))}));
      out.q.row = 0;
      out.k.row = QueryColumns();
      out.v.row = out.k.row + hd;
    } else {
      if (q.stride != hd || k.stride != hd || v.stride != hd || q.weight == k.weight ||
          k.weight == v.weight || q.weight == v.weight)
        return Odd("rows of q, k and v are neither joined nor apart");
      TESSERA_RETURN_IF_ERROR(NeedRows(q.weight, {From(q.row, Queries())}));
      TESSERA_RETURN_IF_ERROR(NeedRows(k.weight, {From(k.row, KvRows(hd))}));
      TESSERA_RETURN_IF_ERROR(NeedRows(v.weight, {From(v.row, KvRows(hd))}));
      out.q.row = out.k.row = out.v.row = 0;
    }
    if (step.bias)
      TESSERA_RETURN_IF_ERROR(
          NeedRows(*step.bias, {Queries(), From(whole_.dims.heads * hd, KvRows(2 * hd))}));
    return SetColumns(step.out, QueryColumns());
  }

  Status CutStep(const AttentionStep& step, size_t) { return SetColumns(step.out, QueryColumns()); }

  Status CutStep(const ProjectStep& step, size_t at) {
    if (step.bias) TESSERA_RETURN_IF_ERROR(Keep(*step.bias));
    const bool after_attention = std::holds_alternative<AttentionStep>(whole_.steps[at - 1].op);
    const auto inputs_of = [&](const RankShare& share) {
      return after_attention ? Queries(share) : share.ffn;
    };
    const Weight& weight = whole_.weights[static_cast<size_t>(step.weight)];
    WeightSlice slice{WeightSlice::Kind::kInputs, {}, inputs_of(share_), {}};
    for (const RankShare& share : shares_)
      slice.segments.push_back(inputs_of(share).size() / (weight.k / weight.segments));
    return Need(step.weight, std::move(slice));
  }

  Status CutStep(const GatedStep& step, size_t) {
    const Interval& columns = share_.ffn;
    if (columns.begin % kernels::kGroupRows != 0 || columns.end % kernels::kGroupRows != 0)
      return Odd(fmt::format("columns {} to {} of the ffn are no whole groups of {}", columns.begin,
                             columns.end, kernels::kGroupRows));
    TESSERA_RETURN_IF_ERROR(Keep(step.norm.weight));
    const int64_t rows = step.up ? 1 : 2;  // Of the weight for each column.
    TESSERA_RETURN_IF_ERROR(
        NeedRows(step.gate, {Interval{rows * columns.begin, rows * columns.end}}));
    if (step.up) TESSERA_RETURN_IF_ERROR(NeedRows(*step.up, {columns}));
    return SetColumns(step.out, columns.size());
  }

  Status CutStep(const HeadStep& step, size_t) {
    TESSERA_RETURN_IF_ERROR(Keep(step.norm.weight));
    const auto& embed = std::get<EmbedStep>(whole_.steps.front().op);
    if (embed.table == step.weight || LogitBlocks(whole_) < out_.ranks) {
      out_.head_row = share_.vocabulary.begin;
      return Keep(step.weight);
    }
    return NeedRows(step.weight, {share_.vocabulary});
  }

  void CutWeight(size_t index) {
    if (!cut_[index]) return;  // No step reads it.
    out_.slices[index] = *cut_[index];
    const WeightSlice& slice = out_.slices[index];
    Weight& weight = out_.program.weights[index];
    if (slice.kind == WeightSlice::Kind::kWhole) return;
    weight.entry = fmt::format("{}{}{}", weight.entry, kShardSuffix, out_.rank);
    if (slice.kind == WeightSlice::Kind::kInputs) {
      const int64_t segment = weight.k / weight.segments;
      TESSERA_CHECK(slice.inputs.begin % segment == 0 && slice.inputs.end % segment == 0);
      weight.layout = WeightLayout::kSegments;
      weight.k = slice.inputs.size();
      weight.segments = weight.k / segment;
      weight.bytes = weight.segments * kernels::PackedBytes(weight.dtype, weight.n, segment);
      return;
    }
    int64_t rows = 0;
    for (const Interval& interval : slice.rows) rows += interval.size();
    if (weight.layout == WeightLayout::kPacked8) {
      weight.n = rows;
      weight.bytes = kernels::PackedBytes(weight.dtype, rows, weight.k);
    } else {
      weight.bytes = weight.bytes / weight.k * rows;
      weight.k = rows;
    }
  }

  const Program& whole_;
  const std::vector<RankShare>& shares_;
  const RankShare& share_;
  RankProgram out_;
  std::vector<std::optional<WeightSlice>> cut_;
};

}  // namespace

std::string PossibleRanks(const Program& program, bool allow_uneven) {
  return ListRanks(PartsOf(program), allow_uneven);
}

Result<std::vector<RankShare>> PlanShares(const Program& program, int64_t ranks,
                                          bool allow_uneven) {
  const Parts parts = PartsOf(program);
  if (!Works(parts, ranks, allow_uneven)) {
    const Dims& d = program.dims;
    const bool divides = ranks >= 1 && ranks <= kMaxRanks && d.kv_heads % ranks == 0;
    return Fail(InvalidArgument(fmt::format(
        "tp{} does not divide this model's {} heads over {} KV heads{}; use {}{}", ranks, d.heads,
        d.kv_heads, divides ? " in whole blocks of its weights" : "",
        ListRanks(parts, allow_uneven),
        !allow_uneven && Works(parts, ranks, true) ? ", or uneven shares (--allow-uneven)" : "")));
  }
  std::vector<RankShare> shares;
  if (ranks == 1) {
    shares.push_back(
        {{0, program.dims.kv_heads}, {0, parts.ffn_columns}, {0, program.dims.vocab_size}});
    return shares;
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    RankShare share;
    share.kv_heads = Deal(parts.heads, rank, ranks, program.dims.kv_heads / parts.heads);
    share.ffn = Deal(parts.ffn, rank, ranks, parts.ffn_columns / parts.ffn);
    share.vocabulary = Deal(LogitBlocks(program), rank, ranks, kernels::kLogitBlock);
    share.vocabulary.end = std::min(share.vocabulary.end, program.dims.vocab_size);
    shares.push_back(share);
  }
  return shares;
}

Result<RankProgram> MakeRankProgram(const Program& whole, const std::vector<RankShare>& shares,
                                    int64_t rank) {
  const auto ranks = std::ssize(shares);
  TESSERA_CHECK(rank >= 0 && rank < ranks);
  if (ranks == 1) return WholeProgram(whole);
  return Cutter(whole, shares, rank).Cut();
}

RankProgram WholeProgram(Program program) {
  RankProgram out;
  out.all_kv_heads = program.dims.kv_heads;
  out.vocabulary = {0, program.dims.vocab_size};
  out.slices.resize(program.weights.size());
  out.program = std::move(program);
  return out;
}

std::string RankFile(std::string_view file, int64_t rank) {
  constexpr std::string_view kExtension = ".irpa";
  TESSERA_CHECK(file.ends_with(kExtension));
  file.remove_suffix(kExtension.size());
  return fmt::format("{}.rank{}{}", file, rank, kExtension);
}

}  // namespace tessera::bundle
