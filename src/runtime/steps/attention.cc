// SPDX-License-Identifier: Apache-2.0
//
// Shares (rows, heads) items of about equal cost, planned by RowView; a strip makes its own. An
// item converts its own columns, which are whole blocks, for the projection that follows.
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

/// One step's attention on one worker.
class Attention {
 public:
  Attention(Executor& ex, const bundle::AttentionStep& step, Worker* worker)
      : ex_(ex), step_(step), worker_(worker), out_(ex.activations(step.out, *worker)) {
    args_.layout = ex.kv().PlaneLayout();
    args_.pool = ex.kv().data();
    args_.ldq = ex.columns(step.in);
    args_.head_begin = 0;
    args_.head_end = 1;
    args_.scale = static_cast<float>(step.scale);
    args_.softcap = static_cast<float>(step.softcap);
    args_.window = step.window;
    args_.scratch = worker->attention;
  }

  void Run(const AttentionItem& item) {
    const bundle::Dims& dims = ex_.dims();
    const int64_t column =
        (item.kv_head * (dims.heads / dims.kv_heads) + item.head) * dims.head_dim;
    const int64_t columns = item.heads * dims.head_dim;
    const Activations to = out_.From(item.range.row - worker_->row, column);
    const bool convert = to.kind != bundle::BufferKind::kFloat;
    args_.pages = item.range.pages;
    args_.layer = ex_.KvPlane(step_.layer, item.kv_head);
    args_.q = ex_.step_floats(step_.in) + item.range.source * args_.ldq + column;
    args_.start = item.range.start;
    args_.rows = item.range.rows;
    args_.group = item.heads;
    args_.out = convert ? worker_->tile : to.x;
    args_.ld_out = convert ? columns : to.ldx;
    ex_.kernels().attention(args_);
    Count(args_, &worker_->counters);
    if (convert) ex_.Convert(worker_->tile, columns, columns, item.range.rows, to);
  }

  /// The worker's strip: head after head, so that its keys and values serve all rows from L2.
  void RunStrip() {
    const bundle::Dims& dims = ex_.dims();
    const int64_t end = worker_->row + worker_->rows;
    for (int64_t kv_head = 0; kv_head < dims.kv_heads; ++kv_head) {
      for (const RowRange& range : worker_->view->RangesFrom(worker_->row)) {
        if (range.row >= end) break;
        const int64_t stop = std::min(range.row + range.rows, end);
        for (int64_t row = std::max(range.row, worker_->row); row < stop;
             row += kernels::kAttentionRows) {
          const int64_t at = row - range.row;
          Run({{row, range.source + at, std::min(kernels::kAttentionRows, stop - row),
                range.start + at, range.pages},
               kv_head,
               0,
               dims.heads / dims.kv_heads,
               0});
        }
      }
    }
  }

 private:
  Executor& ex_;
  const bundle::AttentionStep& step_;
  Worker* const worker_;
  const Activations out_;
  kernels::AttentionArgs args_;
};

}  // namespace

void RunOp(Executor& ex, const bundle::AttentionStep& step, Worker* worker) {
  Attention attention(ex, step, worker);
  if (worker->alone) return attention.RunStrip();
  const std::span<const AttentionItem> items = worker->view->ItemsOf(worker->index, worker->count);
  for (size_t i = 0; i < items.size();) attention.Run(Merged(items, &i));
}

}  // namespace tessera::runtime
