// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine_probe.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "kernels/catalog.h"
#include "kernels/matmul.h"
#include "kernels/pack.h"
#include "runtime/arena.h"

namespace tessera::runtime {
namespace {

constexpr int kRounds = 4;
constexpr double kRoundSeconds =
    0.005;  // Long against a scheduler's wake-up, short against a user.
constexpr int64_t kReadBytes = 256 << 20;  // 8 times a large L3.

Result<std::unique_ptr<ThreadPool>> MakePool(const Topology& topology, int threads) {
  std::vector<int> cpus;
  // More threads than cores: pinning would only put two on one core.
  if (threads <= static_cast<int>(topology.cores.size()))
    for (int i = 0; i < threads; ++i) cpus.push_back(topology.cores[static_cast<size_t>(i)].cpu);
  return ThreadPool::Make(threads, std::move(cpus));
}

/// Seconds of the quickest of several runs of `phase` by all threads.
double BestSeconds(ThreadPool* pool, int rounds, const std::function<void(int)>& phase) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const TimePoint begin = Clock::Real().Now();
    pool->Run(phase);
    best = std::min(best, Seconds(Clock::Real().Now() - begin));
  }
  return best;
}

/// Seconds of one iteration of `work(worker, iterations)`, run by all threads at once, so many of
/// them that a round lasts kRoundSeconds.
double SecondsPerIteration(ThreadPool* pool, const std::function<void(int, int64_t)>& work) {
  int64_t iterations = 16;
  const auto phase = [&](int worker) { work(worker, iterations); };
  for (;;) {
    double seconds = BestSeconds(pool, 1, phase);
    // One round that lasts long may have been held up: only if all do are there enough iterations.
    if (seconds >= kRoundSeconds) seconds = std::min(seconds, BestSeconds(pool, kRounds, phase));
    if (seconds >= kRoundSeconds) return seconds / static_cast<double>(iterations);
    const double growth = std::clamp(1.2 * kRoundSeconds / seconds, 1.5, 16.0);
    iterations = static_cast<int64_t>(static_cast<double>(iterations) * growth);
  }
}

int Bits(kernels::Mix mix) {
  switch (mix) {
    case kernels::Mix::kDot5Bits:
      return 5;
    case kernels::Mix::kDot6Bits:
      return 6;
    case kernels::Mix::kDot8Bits:
      return 8;
    case kernels::Mix::kFloatFma:
    case kernels::Mix::kDotBFloat16:
      break;
  }
  return 0;
}

}  // namespace

double MachineRates::MatmulOps(tensor::DType weights) const {
  using tensor::DType;
  if (kernels::UsesBFloat16Rows(weights)) return bfloat16_ops;
  if (!kernels::UsesQuantisedRows(weights)) return float_ops;
  if (weights == DType::kQ8_0) return int8_ops;
  return weights == DType::kQ6_K ? int6_ops : int5_ops;
}

void MachineRates::KeepBest(const MachineRates& other) {
  read_bytes = std::max(read_bytes, other.read_bytes);
  float_ops = std::max(float_ops, other.float_ops);
  bfloat16_ops = std::max(bfloat16_ops, other.bfloat16_ops);
  int5_ops = std::max(int5_ops, other.int5_ops);
  int6_ops = std::max(int6_ops, other.int6_ops);
  int8_ops = std::max(int8_ops, other.int8_ops);
  barrier_seconds = std::min(barrier_seconds, other.barrier_seconds);
  for (size_t i = 0; i < probes.size(); ++i)
    probes[i].ops = std::max(probes[i].ops, other.probes[i].ops);
}

Result<double> MeasureOps(const kernels::Probe& probe, const Topology& topology, int threads) {
  TESSERA_ASSIGN_OR_RETURN(const auto pool, MakePool(topology, threads));
  std::atomic<uint64_t> used{0};  // So that no call can be left out.
  const double seconds = SecondsPerIteration(pool.get(), [&](int, int64_t iterations) {
    used.fetch_add(probe.run(iterations), std::memory_order_relaxed);
  });
  return static_cast<double>(probe.ops_per_iteration * threads) / seconds;
}

Result<double> MeasureReadBandwidth(const Topology& topology, int threads) {
  const int64_t share = kReadBytes / threads / 256 * 256;
  const Result<Mapping> memory = Mapping::Reserve(kReadBytes, /*huge=*/true);
  if (!memory.has_value()) return 0;
  std::byte* data = memory->data();
  TESSERA_ASSIGN_OR_RETURN(const auto pool, MakePool(topology, threads));
  // Written, so that every page is there; by its reader, so that it is near.
  pool->Run([&](int worker) { std::fill_n(data + share * worker, share, std::byte{1}); });
  const kernels::ReadFn read = kernels::FindRead(ReadIsa());
  std::atomic<uint64_t> used{0};
  const double seconds = BestSeconds(pool.get(), kRounds, [&](int worker) {
    used.fetch_add(read(data + share * worker, share), std::memory_order_relaxed);
  });
  return static_cast<double>(share * threads) / seconds;
}

Result<double> MeasureBarrier(const Topology& topology, int threads) {
  if (threads == 1) return 0;
  TESSERA_ASSIGN_OR_RETURN(const auto pool, MakePool(topology, threads));
  return SecondsPerIteration(pool.get(), [&](int worker, int64_t iterations) {
    for (int64_t i = 0; i < iterations; ++i) pool->Barrier(worker);
  });
}

Result<MachineRates> MeasureMachine(const Topology& topology, int threads) {
  MachineRates rates;
  rates.threads = threads;
  const Isa machine = ReadIsa();
  for (const kernels::Probe& probe : kernels::Probes()) {
    if (!kernels::Runs(probe.isa, machine)) continue;
    TESSERA_ASSIGN_OR_RETURN(const double ops, MeasureOps(probe, topology, threads));
    rates.probes.push_back({probe.name, ops});
    const int bits = Bits(probe.mix);
    if (bits == 0) rates.bfloat16_ops = std::max(rates.bfloat16_ops, ops);
    if (probe.mix == kernels::Mix::kFloatFma) rates.float_ops = std::max(rates.float_ops, ops);
    // What is exact for wide codes is exact for narrow ones.
    if (bits >= 5) rates.int5_ops = std::max(rates.int5_ops, ops);
    if (bits >= 6) rates.int6_ops = std::max(rates.int6_ops, ops);
    if (bits >= 8) rates.int8_ops = std::max(rates.int8_ops, ops);
  }
  TESSERA_ASSIGN_OR_RETURN(rates.read_bytes, MeasureReadBandwidth(topology, threads));
  TESSERA_ASSIGN_OR_RETURN(rates.barrier_seconds, MeasureBarrier(topology, threads));
  return rates;
}

double MeasureMatmulRate(tensor::DType weights) {
  constexpr int64_t kOutputs = 512, kInputs = 1024, kRows = 64;
  const kernels::Entry* entry = kernels::FindMatmul(weights, kRows, ReadIsa());
  if (entry == nullptr || !kernels::CanPack(weights, kInputs)) return 0;
  // Zeros: the kernels' time does not depend on the values.
  const Result<Mapping> packed = Mapping::Reserve(
      static_cast<uint64_t>(kernels::PackedBytes(weights, kOutputs, kInputs)), /*huge=*/false);
  const int64_t activation_bytes = std::max(kernels::QuantisedRowsBytes(kRows, kInputs),
                                            kernels::BFloat16RowsBytes(kRows, kInputs));
  const Result<Mapping> activations =
      Mapping::Reserve(static_cast<uint64_t>(activation_bytes), /*huge=*/false);
  if (!packed.has_value() || !activations.has_value()) return 0;
  std::vector<float> x(static_cast<size_t>(kRows * kInputs));
  std::vector<float> out(static_cast<size_t>(kRows * kOutputs));
  kernels::MatmulArgs args;
  args.weights = packed->data();
  args.n = kOutputs;
  args.k = kInputs;
  args.q = kernels::MakeQuantisedRows(activations->data(), kRows, kInputs);
  args.b = kernels::MakeBFloat16Rows(activations->data(), kRows);
  args.x = x.data();
  args.ldx = kInputs;
  args.rows = kRows;
  args.out = out.data();
  args.ld_out = kOutputs;
  args.group_end = kernels::GroupCount(kOutputs);
  const auto matmul = std::get<kernels::MatmulFn>(entry->fn);
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    const TimePoint begin = Clock::Real().Now();
    matmul(args);
    const double seconds = Seconds(Clock::Real().Now() - begin);
    best = std::max(best, static_cast<double>(kOutputs * kInputs * kRows) / seconds);
  }
  return best;
}

}  // namespace tessera::runtime
