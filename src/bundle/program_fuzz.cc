// SPDX-License-Identifier: Apache-2.0
//
// What is read is either refused or, written again, reads back the same; the verifier never trips.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "bundle/program.h"
#include "bundle/program_verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace bundle = tessera::bundle;
  const auto program = bundle::ReadProgram({reinterpret_cast<const char*>(data), size}, "input");
  if (!program.has_value()) return 0;
  (void)bundle::VerifyProgram(*program);
  const auto again = bundle::ReadProgram(bundle::WriteProgram(*program), "again");
  TESSERA_CHECK(again.has_value());
  TESSERA_CHECK(*again == *program);
  return 0;
}
