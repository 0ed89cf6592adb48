// SPDX-License-Identifier: Apache-2.0
//
// Shares (rows, heads) items of about equal cost, planned by StepRows. An item converts its own
// columns, which are whole blocks, for the projection that follows.
#include <algorithm>

#include "runtime/steps/steps.h"

namespace tessera::runtime {
namespace {

/// The call reads K and V of every position that one of its rows sees.
void Count(const kernels::AttentionArgs& args, WorkCounters* counters) {
  const int64_t end = args.start + args.rows;
  const auto first_seen_from = [&](int64_t position) {
    return args.window > 0 ? std::max<int64_t>(position + 1 - args.window, 0) : 0;
  };
  int64_t seen = 0;  // Over the rows.
  for (int64_t position = args.start; position < end; ++position)
    seen += position + 1 - first_seen_from(position);
  counters->kv_bytes += static_cast<uint64_t>((end - first_seen_from(args.start)) *
                                              args.layout.HeadBytes() / args.layout.page_tokens);
  counters->attention_macs += static_cast<uint64_t>(seen * 2 * args.layout.head_dim * args.group);
}

/// Item *i and those after it that read the same K and V; *i goes on to the first that does not.
AttentionItem Merged(std::span<const AttentionItem> items, size_t* i) {
  AttentionItem merged = items[(*i)++];
  for (; *i < items.size(); ++*i) {
    const AttentionItem& next = items[*i];
    if (next.kv_head != merged.kv_head || next.range.row != merged.range.row) break;
    merged.heads += next.heads;
  }
  return merged;
}

}  // namespace

void RunOp(Executor& ex, const bundle::AttentionStep& step, Worker* worker) {
  const bundle::Dims& dims = ex.dims();
  const KvMemory& kv = ex.kv();
  const int64_t ldq = ex.columns(step.in);
  const bool convert = ex.kind(step.out) != bundle::BufferKind::kFloat;
  kernels::AttentionArgs args;
  args.layout = kv.PlaneLayout();
  args.pool = kv.data();
  args.ldq = ldq;
  args.head_begin = 0;
  args.head_end = 1;
  args.scale = static_cast<float>(step.scale);
  args.softcap = static_cast<float>(step.softcap);
  args.window = step.window;
  args.scratch = worker->attention;
  const std::span<const AttentionItem> items = ex.rows().ItemsOf(worker->index, worker->count);
  for (size_t i = 0; i < items.size();) {
    const AttentionItem item = Merged(items, &i);
    const int64_t column =
        (item.kv_head * (dims.heads / dims.kv_heads) + item.head) * dims.head_dim;
    const int64_t columns = item.heads * dims.head_dim;
    args.pages = item.range.pages;
    args.layer = kv.Plane(step.layer, item.kv_head);
    args.q = ex.floats(step.in) + item.range.row * ldq + column;
    args.start = item.range.start;
    args.rows = item.range.rows;
    args.group = item.heads;
    args.out = convert ? worker->tile : ex.floats(step.out) + item.range.row * ldq + column;
    args.ld_out = convert ? columns : ldq;
    ex.kernels().attention(args);
    Count(args, &worker->counters);
    if (convert)
      ex.Convert(worker->tile, columns, columns, item.range.rows,
                 ex.activations(step.out).From(item.range.row, column));
  }
}

}  // namespace tessera::runtime
