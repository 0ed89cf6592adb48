// SPDX-License-Identifier: Apache-2.0
//
// Kernels for AVX2 with AVX-VNNI (processors without AVX-512), bit-identical to kernels/ref/. Call
// them only where Isa::avx2 and Isa::avx_vnni hold; catalog.h sees to that.
#pragma once

#include "kernels/matmul.h"
#include "tensor/dtype.h"

namespace tessera::kernels::avx_vnni {

/// Quantised formats. One: meant for one row. Many: meant for two and more.
template <tensor::DType dtype>
void MatmulOneRow(const MatmulArgs& args);
template <tensor::DType dtype>
void MatmulRows(const MatmulArgs& args);

}  // namespace tessera::kernels::avx_vnni
