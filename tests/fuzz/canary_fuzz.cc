// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer that must fail: a read past the end of a heap block behind a four-byte secret. run.sh
// demands that it is found, so a harness that lost its coverage or its sanitizers cannot pass.
#include <cstdint>
#include <cstring>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const auto copy = std::make_unique<uint8_t[]>(size);
  std::memcpy(copy.get(), data, size);
  // One comparison a byte: only a search guided by coverage gets through within seconds.
  if (copy[0] == 'C' && copy[1] == 'N' && copy[2] == 'R' && copy[3] == 'Y') {
    volatile uint8_t past_the_end = copy[size];
    (void)past_the_end;
  }
  return 0;
}
