// SPDX-License-Identifier: Apache-2.0
//
// Bytes as a message of rank 0: refused, or what is read points into the message's own memory and
// is written again as the same bytes.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "runtime/step_message.h"

namespace {

namespace runtime = tessera::runtime;

constexpr int64_t kPages = 100;

template <class Span>
void CheckInside(const Span& part, const std::vector<int32_t>& whole) {
  if (part.empty()) return;
  TESSERA_CHECK(part.data() >= whole.data());
  TESSERA_CHECK(part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tessera::ByteSpan bytes = std::as_bytes(std::span(data, size));
  runtime::StepMessage message;
  if (!message.Read(bytes, kPages).ok()) return 0;
  TESSERA_CHECK(runtime::CheckStepBytes(static_cast<int64_t>(size)).ok());
  for (const runtime::Chunk& chunk : message.chunks) {
    CheckInside(chunk.tokens, message.numbers);
    CheckInside(chunk.pages, message.numbers);
  }
  if (message.command != runtime::StepCommand::kStep) {
    if (message.command == runtime::StepCommand::kEnd) return 0;
    TESSERA_CHECK(message.first >= 0 && message.first < kPages);
    return 0;
  }
  std::vector<std::byte> written;
  runtime::WriteStep(message.chunks, &written);
  runtime::StepMessage again;
  TESSERA_CHECK(again.Read(written, kPages).ok());
  TESSERA_CHECK(again.numbers == message.numbers && again.chunks.size() == message.chunks.size());
  return 0;
}
