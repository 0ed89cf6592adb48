// SPDX-License-Identifier: Apache-2.0
//
// The SSE parser: any bytes, any split (chosen by the first byte) give the same events as one
// piece, and what the encoder writes of them is read back equal.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "net/sse.h"

namespace {

using tessera::net::SseEvent;

std::vector<SseEvent> Parse(std::string_view bytes, size_t grain) {
  std::vector<SseEvent> events;
  tessera::net::SseParser parser([&](SseEvent event) { events.push_back(std::move(event)); }, 4096);
  while (!bytes.empty() && parser.Feed(bytes.substr(0, grain)).ok())
    bytes.remove_prefix(std::min(grain, bytes.size()));
  return events;
}

bool Equal(const SseEvent& a, const SseEvent& b) {
  return a.event == b.event && a.data == b.data && a.id == b.id;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<SseEvent> whole = Parse(bytes, SIZE_MAX);
  const std::vector<SseEvent> pieces = Parse(bytes, data[0] == 0 ? 1 : data[0]);
  TESSERA_CHECK(whole.size() == pieces.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    TESSERA_CHECK(Equal(whole[i], pieces[i]));
    const std::vector<SseEvent> again = Parse(tessera::net::EncodeSse(whole[i]), SIZE_MAX);
    // An event near the limit may pass it with the encoder's own bytes.
    TESSERA_CHECK(again.size() <= 1 && (again.empty() || Equal(again[0], whole[i])));
  }
  return 0;
}
