// SPDX-License-Identifier: Apache-2.0
//
// Micro-benchmarks: matmul GOP/s and GB/s of streamed weights, attention GB/s, row kernels.
//   kernels_bench --benchmark_filter='matmul.q4_1.*N:1536/K:576'
// Matmuls cycle through copies of the matrix that exceed the caches at M = 1 (argument `cold`), so
// that GB/s is memory's; one thread.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/topology.h"
#include "kernels/catalog.h"
#include "kernels/pack.h"
#include "kernels/ref/scalar.h"

namespace tessera::kernels {
namespace {

using tensor::DType;

struct Memory {
  explicit Memory(int64_t bytes)
      : data(static_cast<std::byte*>(
            ::operator new (static_cast<size_t>(bytes), std::align_val_t{4096}))) {}
  ~Memory() { ::operator delete (data, std::align_val_t{4096}); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data;
};

void FillRandom(std::byte* data, int64_t bytes, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    // Small f16 and f32 exponents in every position: no NaN, no denormal sums.
    const uint64_t word = random() & 0x3fff3fff3fff3fffu;
    std::memcpy(data + i, &word, 8);
  }
}

void FillNormal(float* data, int64_t count, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(random.Normal());
}

constexpr int64_t kColdBytes = 192 << 20;

void Matmul(benchmark::State& state, const Entry* entry) {
  const int64_t rows = state.range(0), n = state.range(1), k = state.range(2);
  const DType dtype = *entry->weights;
  const int64_t bytes = PackedBytes(dtype, n, k);
  const int64_t copies = rows <= 8 ? kColdBytes / bytes + 1 : 1;
  const Memory weights(copies * bytes + 64), x(rows * k * 4), out(rows * n * 4);
  const Memory quantised(QuantisedRowsBytes(rows, k) + 64);
  FillRandom(weights.data, copies * bytes, 1);
  FillNormal(reinterpret_cast<float*>(x.data), rows * k, 2);
  MatmulArgs args{.weights = weights.data, .n = n, .k = k};
  if (UsesQuantisedRows(dtype)) {
    args.q = MakeQuantisedRows(quantised.data, rows, k);
    SelectRowKernels(ReadIsa()).quantise({.x = reinterpret_cast<float*>(x.data),
                                          .ldx = k,
                                          .k = k,
                                          .row_begin = 0,
                                          .row_end = rows,
                                          .out = args.q});
  }
  args.x = reinterpret_cast<float*>(x.data);
  args.ldx = k;
  args.rows = rows;
  args.out = reinterpret_cast<float*>(out.data);
  args.ld_out = n;
  args.group_end = GroupCount(n);
  const auto run = std::get<MatmulFn>(entry->fn);
  int64_t copy = 0;
  for (auto _ : state) {
    args.weights = weights.data + copy * bytes;
    run(args);
    copy = copy + 1 == copies ? 0 : copy + 1;
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  state.counters["GOP/s"] =
      Counter(2e-9 * static_cast<double>(rows * n * k), Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      Counter(1e-9 * static_cast<double>(bytes), Counter::kIsIterationInvariantRate);
}

void Attend(benchmark::State& state, AttentionFn run) {
  const int64_t rows = state.range(0), context = state.range(1), dim = state.range(2);
  const int64_t group = state.range(3);
  const KvLayout layout{.layers = 8, .kv_heads = 3, .head_dim = dim, .page_tokens = 64};
  const int64_t pages = (context + rows + 63) / 64;
  const Memory pool(pages * layout.PageBytes()), scratch(AttentionScratchBytes(dim, group));
  FillRandom(pool.data, pages * layout.PageBytes(), 3);
  std::vector<int32_t> ids(static_cast<size_t>(pages));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  const int64_t columns = layout.kv_heads * group * dim;
  std::vector<float> q(static_cast<size_t>(rows * columns), 0.01f), out(q.size());
  AttentionArgs args{
      .layout = layout, .pool = reinterpret_cast<uint16_t*>(pool.data), .pages = ids.data()};
  args.q = q.data();
  args.ldq = args.ld_out = columns;
  args.out = out.data();
  args.start = context;
  args.rows = rows;
  args.head_end = layout.kv_heads;
  args.group = group;
  args.scale = 0.125f;
  args.scratch = scratch.data;
  for (auto _ : state) {
    args.layer = (args.layer + 1) % layout.layers;
    run(args);
    benchmark::ClobberMemory();
  }
  const double macs = 2.0 * static_cast<double>(rows * (context + rows / 2) * columns);
  using benchmark::Counter;
  state.counters["GFLOP/s"] = Counter(2e-9 * macs, Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      Counter(4e-9 * static_cast<double>((context + rows) * layout.kv_heads * dim),
              Counter::kIsIterationInvariantRate);
}

/// Row kernels on `rows` rows of k floats; bytes of input per second.
void Rows(benchmark::State& state, const Entry* entry) {
  const int64_t rows = state.range(0), k = state.range(1);
  const Memory x(rows * k * 8), out(rows * k * 8), quantised(QuantisedRowsBytes(rows, k));
  auto* in = reinterpret_cast<float*>(x.data);
  FillNormal(in, rows * k * 2, 4);
  auto* to = reinterpret_cast<float*>(out.data);
  std::memset(out.data, 0, static_cast<size_t>(rows * k * 8));
  const QuantisedRows q = MakeQuantisedRows(quantised.data, rows, k);
  for (auto _ : state) {
    if (const auto* quantise = std::get_if<QuantiseFn>(&entry->fn)) {
      (*quantise)({.x = in, .ldx = k, .k = k, .row_end = rows, .out = q});
    } else if (const auto* norm = std::get_if<RmsNormFn>(&entry->fn)) {
      (*norm)({.x = in,
               .ldx = k,
               .weight = in,
               .eps = 1e-5f,
               .k = k,
               .row_end = rows,
               .out = to,
               .ld_out = k,
               .q = q});
    } else if (const auto* gate = std::get_if<GatedFn>(&entry->fn)) {
      (*gate)({.x = in,
               .ldx = 2 * k,
               .out = to,
               .ld_out = k,
               .columns = k,
               .layout = GateLayout::kInterleaved,
               .row_end = rows});
    } else if (const auto* binary = std::get_if<BinaryFn>(&entry->fn)) {
      (*binary)({.a = in,
                 .lda = k,
                 .b = to,
                 .ldb = k,
                 .out = to,
                 .ld_out = k,
                 .columns = k,
                 .row_begin = 0,
                 .row_end = rows});
    }
    benchmark::ClobberMemory();
  }
  state.counters["Gfloat/s"] = benchmark::Counter(1e-9 * static_cast<double>(rows * k),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterAll() {
  const Isa machine = ReadIsa();
  for (const Entry& entry : Catalog()) {
    if (entry.isa == KernelIsa::kRef || !Runs(entry.isa, machine)) continue;
    const std::string name(entry.name);
    if (entry.op == Op::kMatmul) {
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(), [&entry](benchmark::State& state) { Matmul(state, &entry); });
      bench->ArgNames({"M", "N", "K"});
      for (const int64_t rows : {1, 2, 4, 8, 32, 128, 512}) {
        if (entry.rows == RowsClass::kOne && rows != 1) continue;
        if (entry.rows == RowsClass::kMany && rows == 1) continue;
        bench->Args({rows, 1536, CanPack(*entry.weights, 576) ? 576 : 768});
        bench->Args({rows, 4096, 4096});
      }
    }
    if (entry.op == Op::kQuantise || entry.op == Op::kRmsNorm || entry.op == Op::kAdd ||
        entry.op == Op::kRmsNormQuantise || entry.op == Op::kSiluGate ||
        entry.op == Op::kGeluGate) {
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&entry](benchmark::State& state) { Rows(state, &entry); })
          ->ArgNames({"rows", "K"})
          ->Args({1, 576})
          ->Args({64, 576})
          ->Args({64, 1536});
    }
    if (entry.op == Op::kAttention) {
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(),
          [run = std::get<AttentionFn>(entry.fn)](benchmark::State& state) { Attend(state, run); });
      bench->ArgNames({"rows", "context", "dim", "group"});
      for (const int64_t context : {0, 512, 4096}) {
        for (const int64_t rows : {1, 16, 512}) {
          bench->Args({rows, context, 64, 3})->Args({rows, context, 128, 4});
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::kernels

int main(int argc, char** argv) {
  tessera::kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
