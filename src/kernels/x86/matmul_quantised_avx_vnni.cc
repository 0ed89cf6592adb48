// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/avx_vnni.h"
#include "kernels/x86/dot_vnni.h"
#include "kernels/x86/matmul_quantised.h"

namespace tessera::kernels::avx_vnni {

template <DType dtype>
void MatmulOneRow(const MatmulArgs& args) {
  MatmulOne<Source<dtype>, DotVnni>(args, GroupBytes(dtype, args.k));
}

template <DType dtype>
void MatmulRows(const MatmulArgs& args) {
  MatmulMany<Source<dtype>, DotVnni>(args, GroupBytes(dtype, args.k));
}

#define TESSERA_INSTANTIATE(dtype)                             \
  template void MatmulOneRow<DType::dtype>(const MatmulArgs&); \
  template void MatmulRows<DType::dtype>(const MatmulArgs&);
TESSERA_INSTANTIATE(kQ4_0)
TESSERA_INSTANTIATE(kQ4_1)
TESSERA_INSTANTIATE(kQ5_0)
TESSERA_INSTANTIATE(kQ5_1)
TESSERA_INSTANTIATE(kQ8_0)
TESSERA_INSTANTIATE(kQ4_K)
TESSERA_INSTANTIATE(kQ5_K)
TESSERA_INSTANTIATE(kQ6_K)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels::avx_vnni
