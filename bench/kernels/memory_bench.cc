// SPDX-License-Identifier: Apache-2.0
//
// What the memory system gives one thread: a stream of reads by size of the data (cache levels,
// then DRAM), and the first touch of fresh pages. And the arithmetic peaks of kernels/probe.h.
#include <string>

#include "base/check.h"
#include "kernels/probe.h"
#include "kernels/registry.h"
#include "runtime/arena.h"

namespace tessera::kernels {
namespace {

void Read(benchmark::State& state) {
  const int64_t bytes = state.range(0) << 10;
  const auto memory = runtime::Mapping::Reserve(static_cast<uint64_t>(bytes), /*huge=*/true);
  TESSERA_CHECK(memory.has_value());
  std::memset(memory->data(), 1, static_cast<size_t>(bytes));
  const ReadFn read = FindRead(ReadIsa());
  for (auto _ : state) benchmark::DoNotOptimize(read(memory->data(), bytes));
  state.counters["GB/s"] = Billions(static_cast<double>(bytes));
}

void FirstTouch(benchmark::State& state) {
  constexpr uint64_t kBytes = 64 << 20;
  const bool huge = state.range(0) != 0;
  for (auto _ : state) {
    const auto memory = runtime::Mapping::Reserve(kBytes, huge);
    TESSERA_CHECK(memory.has_value());
    std::memset(memory->data(), 1, kBytes);
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = Billions(static_cast<double>(kBytes));
}

void Peak(benchmark::State& state, const Probe* probe) {
  constexpr int64_t kIterations = 10000;
  for (auto _ : state) benchmark::DoNotOptimize(probe->run(kIterations));
  state.counters["GOP/s"] = Billions(static_cast<double>(kIterations * probe->ops_per_iteration));
}

}  // namespace

void RegisterMemory() {
  benchmark::RegisterBenchmark("read", Read)
      ->ArgName("KiB")
      ->RangeMultiplier(8)
      ->Range(32, 1 << 20);
  benchmark::RegisterBenchmark("first_touch", FirstTouch)->ArgName("huge")->Arg(0)->Arg(1);
  const Isa machine = ReadIsa();
  for (const Probe& probe : Probes())
    if (Runs(probe.isa, machine))
      benchmark::RegisterBenchmark(("peak." + std::string(probe.name)).c_str(),
                                   [&probe](benchmark::State& state) { Peak(state, &probe); });
}

}  // namespace tessera::kernels
