// SPDX-License-Identifier: Apache-2.0
//
// Kernels over rows of activations: norm, quantise, round, gates, rope, sums. Billions of floats a
// second.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/registry.h"

namespace tessera::kernels {
namespace {

struct RowData {
  RowData(int64_t row_count, int64_t columns)
      : rows(row_count),
        k(columns),
        x(rows * k * 8),
        out(rows * k * 8),
        prepared(std::max(QuantisedRowsBytes(rows, k), BFloat16RowsBytes(rows, k))),
        table(static_cast<size_t>(rows * k), 0.5f) {
    FillNormal(x.as<float>(), rows * k * 2, 4);
    std::memset(out.as(), 0, static_cast<size_t>(rows * k * 8));
    for (int64_t i = 0; i < rows; ++i) positions.push_back(static_cast<int32_t>(i));
  }
  int64_t rows, k;
  Memory x, out, prepared;
  std::vector<float> table;  // [rows][32][2] of cos and sin are within it for heads of 64.
  std::vector<int32_t> positions;
};

void Run(QuantiseFn run, const RowData& d) {
  run({.x = d.x.as<float>(),
       .ldx = d.k,
       .k = d.k,
       .row_end = d.rows,
       .out = MakeQuantisedRows(d.prepared.as(), d.rows, d.k)});
}

void Run(RoundFn run, const RowData& d) {
  run({.x = d.x.as<float>(),
       .ldx = d.k,
       .k = d.k,
       .row_end = d.rows,
       .out = MakeBFloat16Rows(d.prepared.as(), d.rows)});
}

void Run(RmsNormFn run, const RowData& d) {
  run({.x = d.x.as<float>(),
       .ldx = d.k,
       .weight = d.x.as<float>(),
       .eps = 1e-5f,
       .k = d.k,
       .row_end = d.rows,
       .out = d.out.as<float>(),
       .ld_out = d.k,
       .q = MakeQuantisedRows(d.prepared.as(), d.rows, d.k),
       .b = MakeBFloat16Rows(d.prepared.as(), d.rows)});
}

void Run(GatedFn run, const RowData& d) {
  run({.x = d.x.as<float>(),
       .ldx = 2 * d.k,
       .out = d.out.as<float>(),
       .ld_out = d.k,
       .columns = d.k,
       .layout = GateLayout::kInterleaved,
       .row_end = d.rows});
}

void Run(BinaryFn run, const RowData& d) {
  run({.a = d.x.as<float>(),
       .lda = d.k,
       .b = d.out.as<float>(),
       .ldb = d.k,
       .out = d.out.as<float>(),
       .ld_out = d.k,
       .columns = d.k,
       .row_end = d.rows});
}

void Run(RopeFn run, const RowData& d) {
  constexpr int64_t kHeadDim = 64;
  run({.x = d.x.as<float>(),
       .ldx = d.k,
       .heads = d.k / kHeadDim,
       .head_dim = kHeadDim,
       .rotary = kHeadDim,
       .table = d.table.data(),
       .positions = d.positions.data(),
       .row_end = d.rows});
}

void Run(FloatToHalfFn run, const RowData& d) {
  run(d.x.as<float>(), d.out.as<uint16_t>(), d.rows * d.k);
}

template <class Fn>
void Bench(benchmark::State& state, Fn run) {
  const RowData data(state.range(0), state.range(1));
  for (auto _ : state) {
    Run(run, data);
    benchmark::ClobberMemory();
  }
  state.counters["Gfloat/s"] = Billions(static_cast<double>(data.rows * data.k));
}

}  // namespace

void RegisterRows() {
  const Isa machine = ReadIsa();
  for (const Entry& entry : Catalog()) {
    if (entry.isa == KernelIsa::kRef || !Runs(entry.isa, machine)) continue;
    std::visit(
        [&]<class Fn>(Fn run) {
          if constexpr (requires(const RowData& data) { Run(run, data); }) {
            benchmark::RegisterBenchmark(std::string(entry.name).c_str(),
                                         [run](benchmark::State& state) { Bench(state, run); })
                ->ArgNames({"rows", "K"})
                ->Args({1, 576})
                ->Args({1, 4096})
                ->Args({64, 576})
                ->Args({64, 1536});
          }
        },
        entry.fn);
  }
}

}  // namespace tessera::kernels
