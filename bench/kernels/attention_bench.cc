// SPDX-License-Identifier: Apache-2.0
//
// Attention: one row at the end of a context (decode), and 512 rows after one (prefill). GFLOP/s of
// visible positions; GB/s of keys and values, each read once.
#include <numeric>
#include <string>
#include <vector>

#include "kernels/registry.h"

namespace tessera::kernels {
namespace {

/// Successive runs take another layer's plane, as the layers of a model do.
constexpr int64_t kLayers = 8, kKvHeads = 3, kPageTokens = 64;

/// Normal numbers in all positions and layers.
void FillPages(const KvLayout& layout, const std::vector<int32_t>& pages, std::byte* pool) {
  const int64_t columns = layout.kv_heads * layout.head_dim;
  std::vector<float> rows(static_cast<size_t>(layout.page_tokens * columns));
  FillNormal(rows.data(), std::ssize(rows), 3);
  const auto write =
      std::get<KvWriteFn>(Find(Op::kKvWrite, std::nullopt, RowsClass::kAny, ReadIsa())->fn);
  KvWriteArgs args{.layout = layout, .pool = pool, .k = rows.data(), .v = rows.data()};
  args.ldk = args.ldv = columns;
  args.rows = layout.page_tokens;
  args.head_end = layout.kv_heads;
  for (args.layer = 0; args.layer < layout.layers; ++args.layer) {
    for (const int32_t& page : pages) {
      args.pages = &page;
      write(args);
    }
  }
}

void Attend(benchmark::State& state, AttentionFn run, KvType type) {
  const int64_t rows = state.range(0), context = state.range(1), dim = state.range(2);
  const int64_t group = state.range(3);
  const KvLayout layout{.layers = kLayers,
                        .kv_heads = kKvHeads,
                        .head_dim = dim,
                        .page_tokens = kPageTokens,
                        .type = type};
  const int64_t pages = (context + rows + kPageTokens - 1) / kPageTokens;
  const Memory pool(pages * layout.PageBytes()), scratch(AttentionScratchBytes(dim, group));
  std::vector<int32_t> ids(static_cast<size_t>(pages));
  std::iota(ids.begin(), ids.end(), 0);
  FillPages(layout, ids, pool.as());
  const int64_t columns = layout.kv_heads * group * dim;
  std::vector<float> q(static_cast<size_t>(rows * columns), 0.01f), out(q.size());
  AttentionArgs args{.layout = layout, .pool = pool.as(), .pages = ids.data()};
  args.q = q.data();
  args.ldq = args.ld_out = columns;
  args.out = out.data();
  args.start = context;
  args.rows = rows;
  args.head_end = layout.kv_heads;
  args.group = group;
  args.scale = 0.125f;
  args.scratch = scratch.as();
  for (auto _ : state) {
    args.layer = (args.layer + 1) % layout.layers;
    run(args);
    benchmark::ClobberMemory();
  }
  const int64_t seen = rows * context + rows * (rows + 1) / 2;
  state.counters["GFLOP/s"] = Billions(4.0 * static_cast<double>(seen * columns));
  state.counters["GB/s"] = Billions(static_cast<double>((context + rows) * layout.kv_heads *
                                                        layout.HeadBytes() / layout.page_tokens));
}

}  // namespace

void RegisterAttention() {
  const Isa machine = ReadIsa();
  for (const Entry& entry : Catalog()) {
    if (entry.op != Op::kAttention || entry.isa == KernelIsa::kRef || !Runs(entry.isa, machine))
      continue;
    for (const KvType type : {KvType::kF16, KvType::kInt8}) {
      auto* bench = benchmark::RegisterBenchmark(
          (std::string(entry.name) + (type == KvType::kInt8 ? "/int8" : "")).c_str(),
          [run = std::get<AttentionFn>(entry.fn), type](benchmark::State& state) {
            Attend(state, run, type);
          });
      bench->ArgNames({"rows", "context", "dim", "group"});
      const auto add = [&](int64_t rows, int64_t context) {
        bench->Args({rows, context, 64, 3})
            ->Args({rows, context, 64, 4})
            ->Args({rows, context, 128, 4});
      };
      for (const int64_t context : {127, 511, 2047, 4095, 16383}) add(1, context);
      for (const int64_t context : {0, 512, 4096}) add(512, context);
    }
  }
}

}  // namespace tessera::kernels
