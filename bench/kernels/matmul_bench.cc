// SPDX-License-Identifier: Apache-2.0
//
// Matmul of every weight format: GOP/s, and GB/s of packed weights. Few rows cycle through copies
// of the matrix that exceed the caches, so that GB/s is memory's; activations are prepared before.
#include <algorithm>

#include "kernels/pack.h"
#include "kernels/registry.h"

namespace tessera::kernels {
namespace {

constexpr int64_t kColdBytes = 192 << 20;
constexpr int64_t kColdRows = 8;

void Matmul(benchmark::State& state, const Entry* entry) {
  const int64_t rows = state.range(0), n = state.range(1), k = state.range(2);
  const int64_t bytes = PackedBytes(*entry->weights, n, k);
  const int64_t copies = rows <= kColdRows ? kColdBytes / bytes + 1 : 1;
  const Memory weights(copies * bytes + 64), x(rows * k * 4), out(rows * n * 4);
  const Memory prepared(
      std::max(QuantisedRowsBytes(rows, k / kBlock * kBlock), BFloat16RowsBytes(rows, k)) + 64);
  FillRandom(weights.as(), copies * bytes, 1);
  FillNormal(x.as<float>(), rows * k, 2);
  MatmulArgs args{.weights = weights.as(), .n = n, .k = k};
  if (UsesQuantisedRows(*entry->weights)) {
    args.q = MakeQuantisedRows(prepared.as(), rows, k);
    SelectRowKernels(ReadIsa()).quantise(
        {.x = x.as<float>(), .ldx = k, .k = k, .row_begin = 0, .row_end = rows, .out = args.q});
  }
  if (UsesBFloat16Rows(*entry->weights)) {
    args.b = MakeBFloat16Rows(prepared.as(), rows);
    SelectRowKernels(ReadIsa()).round(
        {.x = x.as<float>(), .ldx = k, .k = k, .row_begin = 0, .row_end = rows, .out = args.b});
  }
  args.x = x.as<float>();
  args.ldx = k;
  args.rows = rows;
  args.out = out.as<float>();
  args.ld_out = n;
  args.group_end = GroupCount(n);
  const auto run = std::get<MatmulFn>(entry->fn);
  int64_t copy = 0;
  for (auto _ : state) {
    args.weights = weights.as() + copy * bytes;
    run(args);
    copy = copy + 1 == copies ? 0 : copy + 1;
    benchmark::ClobberMemory();
  }
  state.counters["GOP/s"] = Billions(2.0 * static_cast<double>(rows * n * k));
  state.counters["GB/s"] = Billions(static_cast<double>(bytes));
}

}  // namespace

void RegisterMatmul() {
  const Isa machine = ReadIsa();
  for (const Entry& entry : Catalog()) {
    if (entry.op != Op::kMatmul || entry.isa == KernelIsa::kRef || !Runs(entry.isa, machine))
      continue;
    auto* bench =
        benchmark::RegisterBenchmark(std::string(entry.name).c_str(),
                                     [&entry](benchmark::State& state) { Matmul(state, &entry); });
    bench->ArgNames({"M", "N", "K"});
    for (const int64_t rows : {1, 2, 4, 8, 16, 32, 128, 512}) {
      if (entry.rows == RowsClass::kOne && rows != 1) continue;
      if (entry.rows == RowsClass::kMany && rows == 1) continue;
      bench->Args({rows, 1536, CanPack(*entry.weights, 576) ? 576 : 768});
      bench->Args({rows, 4096, 4096});
    }
  }
}

}  // namespace tessera::kernels
