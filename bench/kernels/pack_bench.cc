// SPDX-License-Identifier: Apache-2.0
//
// Packing at compile time, and the embedding lookup out of packed rows. GB/s of source bytes.
#include <string>

#include "kernels/pack.h"
#include "kernels/registry.h"
#include "tensor/dtype.h"

namespace tessera::kernels {
namespace {

using tensor::DType;
constexpr int64_t kOutputs = 2048, kInputs = 4096;

void Pack(benchmark::State& state, DType dtype) {
  const auto row_bytes = static_cast<int64_t>(*tensor::RowBytes(dtype, kInputs));
  const Memory source(kOutputs * row_bytes), packed(PackedBytes(dtype, kOutputs, kInputs));
  FillRandom(source.as(), kOutputs * row_bytes, 5);
  for (auto _ : state) {
    PackRows(dtype, kOutputs, kInputs, source.as(), row_bytes, nullptr, 0, GroupCount(kOutputs),
             packed.as());
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = Billions(static_cast<double>(kOutputs * row_bytes));
}

void Unpack(benchmark::State& state, DType dtype) {
  const Memory packed(PackedBytes(dtype, kOutputs, kInputs)), out(kInputs * 4);
  FillRandom(packed.as(), PackedBytes(dtype, kOutputs, kInputs), 6);
  int64_t row = 0;
  for (auto _ : state) {
    UnpackRow(dtype, kInputs, packed.as(), row, out.as<float>());
    row = (row + 37) % kOutputs;
    benchmark::ClobberMemory();
  }
  state.counters["Gfloat/s"] = Billions(static_cast<double>(kInputs));
}

}  // namespace

void RegisterPack() {
  for (const DType dtype :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ4_K,
        DType::kQ5_K, DType::kQ6_K, DType::kF32, DType::kF16, DType::kBF16}) {
    const std::string name(tensor::Name(dtype));
    benchmark::RegisterBenchmark(("pack." + name).c_str(),
                                 [dtype](benchmark::State& state) { Pack(state, dtype); });
    benchmark::RegisterBenchmark(("unpack_row." + name).c_str(),
                                 [dtype](benchmark::State& state) { Unpack(state, dtype); });
  }
}

}  // namespace tessera::kernels
