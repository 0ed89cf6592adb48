// SPDX-License-Identifier: Apache-2.0
//
// Kernels for AVX-512 (F, BW, DQ, VL) with VNNI, bit-identical to kernels/ref/. Call them only
// where Isa::avx512_vnni holds; catalog.h sees to that.
#pragma once

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/logits.h"
#include "kernels/matmul.h"
#include "tensor/dtype.h"

namespace tessera::kernels::avx512 {

/// Quantised formats, with VNNI. One: meant for one row. Many: meant for two and more.
template <tensor::DType dtype>
void MatmulOneRow(const MatmulArgs& args);
template <tensor::DType dtype>
void MatmulRows(const MatmulArgs& args);

/// F32, F16: meant for two rows and more.
template <tensor::DType dtype>
void MatmulFloat(const MatmulArgs& args);

/// BF16, with fused multiply-adds of widened numbers: meant for two rows and more.
void MatmulBFloat16(const MatmulArgs& args);

/// BF16, with vdpbf16ps: any number of rows. Needs AVX512_BF16, and DotKeepsContract().
void MatmulDotBFloat16(const MatmulArgs& args);

/// Whether this CPU's vdpbf16ps gives the bits that matmul.h defines, on vectors where the other
/// conceivable orders and roundings differ. Needs AVX512_BF16.
bool DotKeepsContract();

void Quantise(const QuantiseArgs& args);
void RmsNormQuantise(const RmsNormArgs& args);
void Add(const BinaryArgs& args);
void Mul(const BinaryArgs& args);
void SiluGate(const GatedArgs& args);
void GeluGate(const GatedArgs& args);
void Attention(const AttentionArgs& args);
void BlockMax(const float* x, int64_t count, float* out);
void SoftmaxMass(const SoftmaxMassArgs& args);

}  // namespace tessera::kernels::avx512
