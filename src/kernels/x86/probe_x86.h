// SPDX-License-Identifier: Apache-2.0
//
// The x86 functions behind kernels/probe.h. Call one only where its ISA runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::kernels {

namespace avx2 {
uint64_t ProbeFma(int64_t iterations);
uint64_t ProbeMaddubs(int64_t iterations);    // One product, then widened.
uint64_t ProbeMaddubsX2(int64_t iterations);  // Two products added in int16, then widened.
uint64_t ProbeMaddubsX4(int64_t iterations);
uint64_t ProbeRead(const std::byte* data, int64_t bytes);
}  // namespace avx2

namespace avx_vnni {
uint64_t ProbeDpbusd(int64_t iterations);
}  // namespace avx_vnni

namespace avx512 {
uint64_t ProbeFma(int64_t iterations);
uint64_t ProbeMaddubs(int64_t iterations);
uint64_t ProbeMaddubsX2(int64_t iterations);
uint64_t ProbeMaddubsX4(int64_t iterations);
uint64_t ProbeDpbusd(int64_t iterations);  // Needs VNNI.
uint64_t ProbeDpbf16(int64_t iterations);  // Needs AVX512_BF16.
uint64_t ProbeRead(const std::byte* data, int64_t bytes);
}  // namespace avx512

}  // namespace tessera::kernels
