// SPDX-License-Identifier: Apache-2.0
//
// One row stays 256 bits wide: joining two groups would cost more than it saves.
#include "kernels/x86/avx512.h"
#include "kernels/x86/dot_vnni.h"
#include "kernels/x86/matmul_quantised.h"
#include "kernels/x86/matmul_wide_avx512.h"

namespace tessera::kernels::avx512 {

template <DType dtype>
void MatmulOneRow(const MatmulArgs& args) {
  MatmulOne<Source<dtype>, DotVnni>(args, GroupBytes(dtype, args.k));
}

/// Formats of 6 and 8 bits are bound by memory up to four rows, and two streams side by side are
/// slower than one: Q8_0 4096x4096, 2 rows: 93 -> 142 GOP/s, 4 rows: 174 -> 209.
template <DType dtype>
void MatmulRows(const MatmulArgs& args) {
  const int64_t group_bytes = GroupBytes(dtype, args.k);
  if constexpr (Source<dtype>::kBytes > 200) {
    if (args.rows <= 4) return MatmulMany<Source<dtype>, DotVnni>(args, group_bytes);
  }
  MatmulWide<Source<dtype>>(args, group_bytes);
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

}  // namespace tessera::kernels::avx512
