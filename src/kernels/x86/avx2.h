// SPDX-License-Identifier: Apache-2.0
//
// Kernels for AVX2 + FMA + F16C + BMI2 (x86-64-v3), bit-identical to kernels/ref/. Call them only
// where Isa::avx2 holds; catalog.h sees to that.
#pragma once

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/logits.h"
#include "kernels/matmul.h"
#include "tensor/dtype.h"

namespace tessera::kernels::avx2 {

/// Quantised formats. One: meant for one row. Many: meant for two and more.
template <tensor::DType dtype>
void MatmulOneRow(const MatmulArgs& args);
template <tensor::DType dtype>
void MatmulRows(const MatmulArgs& args);

/// F32, F16: any number of rows.
template <tensor::DType dtype>
void MatmulFloat(const MatmulArgs& args);

/// BF16: any number of rows.
void MatmulBFloat16(const MatmulArgs& args);

void Quantise(const QuantiseArgs& args);
void Round(const RoundArgs& args);
void RmsNorm(const RmsNormArgs& args);
void RmsNormQuantise(const RmsNormArgs& args);
void RmsNormRound(const RmsNormArgs& args);
void Add(const BinaryArgs& args);
void Mul(const BinaryArgs& args);
void SiluGate(const GatedArgs& args);
void GeluGate(const GatedArgs& args);
void Rope(const RopeArgs& args);
void FloatToHalf(const float* x, uint16_t* out, int64_t count);
void KvWrite(const KvWriteArgs& args);
void Attention(const AttentionArgs& args);
void BlockMax(const float* x, int64_t count, float* out);
void SoftmaxMass(const SoftmaxMassArgs& args);

}  // namespace tessera::kernels::avx2
