// SPDX-License-Identifier: Apache-2.0
#include "cli/machine_probe.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "kernels/catalog.h"
#include "kernels/matmul.h"
#include "kernels/pack.h"

namespace tessera::cli {
namespace {

/// Memory aligned to 64, zeroed.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t size) : storage_(static_cast<size_t>(size) + 64) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    data_ = storage_.data() + (64 - address % 64) % 64;
  }
  std::byte* data() { return data_; }

 private:
  std::vector<std::byte> storage_;
  std::byte* data_;
};

}  // namespace

double MeasureReadBandwidth(const Topology& topology, int threads) {
  constexpr size_t kWords = (256u << 20) / sizeof(uint64_t);  // 8 times a large L3.
  const auto words = std::make_unique<uint64_t[]>(kWords);
  std::iota(words.get(), words.get() + kWords, uint64_t{1});
  std::vector<int> cpus;
  for (const Core& core : topology.cores) cpus.push_back(core.cpu);
  cpus.resize(std::min(cpus.size(), static_cast<size_t>(threads)));
  ThreadPool pool(threads, cpus);
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const TimePoint begin = Clock::Real().Now();
    pool.Run([&](int worker) {
      const size_t share = kWords / static_cast<size_t>(threads);
      const uint64_t* data = words.get() + share * static_cast<size_t>(worker);
      std::array<uint64_t, 8> sum{};  // Independent chains, so that loads and not adds limit.
      for (size_t i = 0; i + 8 <= share; i += 8)
        for (size_t lane = 0; lane < 8; ++lane) sum[lane] += data[i + lane];
      sums[static_cast<size_t>(worker) * 8] = std::accumulate(sum.begin(), sum.end(), uint64_t{0});
    });
    const double seconds = Seconds(Clock::Real().Now() - begin);
    best = std::max(best, static_cast<double>(kWords * sizeof(uint64_t)) / seconds);
  }
  // The sums are used, so that the reads cannot be optimised away.
  return sums[0] == 0 ? 0 : best;
}

double MeasureMatmulRate(tensor::DType weights) {
  constexpr int64_t kOutputs = 512, kInputs = 1024, kRows = 64;
  const kernels::Entry* entry = kernels::FindMatmul(weights, kRows, ReadIsa());
  if (entry == nullptr || !kernels::CanPack(weights, kInputs)) return 0;
  // Zeros: the kernels' time does not depend on the values.
  AlignedBytes packed(kernels::PackedBytes(weights, kOutputs, kInputs));
  AlignedBytes activations(kernels::QuantisedRowsBytes(kRows, kInputs));
  std::vector<float> x(static_cast<size_t>(kRows * kInputs));
  std::vector<float> out(static_cast<size_t>(kRows * kOutputs));
  kernels::MatmulArgs args;
  args.weights = packed.data();
  args.n = kOutputs;
  args.k = kInputs;
  args.q = kernels::MakeQuantisedRows(activations.data(), kRows, kInputs);
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

}  // namespace tessera::cli
