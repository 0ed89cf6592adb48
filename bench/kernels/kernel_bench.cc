// SPDX-License-Identifier: Apache-2.0
//
// Micro-benchmarks of the kernels: kernel_bench --benchmark_filter='matmul.q4_1.*M:1/'
#include "kernels/registry.h"

int main(int argc, char** argv) {
  tessera::kernels::RegisterMatmul();
  tessera::kernels::RegisterAttention();
  tessera::kernels::RegisterRows();
  tessera::kernels::RegisterPack();
  tessera::kernels::RegisterMemory();
  tessera::kernels::RegisterSampler();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
