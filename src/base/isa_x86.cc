// SPDX-License-Identifier: Apache-2.0
#include <cpuid.h>

#include "base/topology.h"

namespace tessera {

Isa ReadIsa() {
  Isa isa;
  __builtin_cpu_init();
  isa.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
  isa.avx512 = isa.avx2 && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  isa.avx512_vnni = isa.avx512 && __builtin_cpu_supports("avx512vnni");
  isa.avx512_bf16 = isa.avx512 && __builtin_cpu_supports("avx512bf16");
  // CPUID leaf 7: AVX-VNNI is EAX bit 4 of subleaf 1, AMX-INT8 is EDX bit 25 of subleaf 0.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (isa.avx2 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx)) isa.avx_vnni = (eax >> 4) & 1;
  if (isa.avx512 && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) isa.amx_int8 = (edx >> 25) & 1;
  return isa;
}

}  // namespace tessera
