// SPDX-License-Identifier: Apache-2.0
#include "kernels/x86/attention_tile_avx512.h"
#include "kernels/x86/attention_walk.h"
#include "kernels/x86/avx512.h"

namespace tessera::kernels::avx512 {

void Attention(const AttentionArgs& a) {
  Attend<AttentionAvx512>(a);
}

}  // namespace tessera::kernels::avx512
