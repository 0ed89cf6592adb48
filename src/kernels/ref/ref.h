// SPDX-License-Identifier: Apache-2.0
//
// The reference kernels: plain loops that define every result bit. Slow on purpose; they run on any
// machine and are what vector kernels are compared with.
#pragma once

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/logits.h"
#include "kernels/matmul.h"
#include "tensor/dtype.h"

namespace tessera::kernels::ref {

/// One specialisation per format that pack.h lists.
template <tensor::DType dtype>
void Matmul(const MatmulArgs& args);

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

}  // namespace tessera::kernels::ref
