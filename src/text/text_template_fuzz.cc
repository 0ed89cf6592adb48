// SPDX-License-Identifier: Apache-2.0
//
// Input: a template, a zero byte, the JSON of the variables (or nothing). Whatever parses must
// render to text or to an error, inside the limits, and the same each time.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/chat_template.h"
#include "text/template_limits.h"

namespace tessera::text {
namespace {

void Fuzz(std::string_view input) {
  const size_t zero = input.find('\0');
  const std::string_view source = input.substr(0, zero);
  std::string request = "{}";
  if (zero != std::string_view::npos) {
    request = "{\"vars\":" + std::string(input.substr(zero + 1)) + "}";
  }
  const auto parsed = ChatTemplate::Parse(source);
  if (!parsed.has_value()) return;
  const auto first = (*parsed)->RenderRequest(request, 0);
  const auto second = (*parsed)->RenderRequest(request, 0);
  TESSERA_CHECK(first.has_value() == second.has_value());
  if (!first.has_value()) {
    // A panic inside textkit comes out as kInternal: a bug to fix.
    TESSERA_CHECK(first.error().code() != Code::kInternal);
    return;
  }
  TESSERA_CHECK(*first == *second);
  TESSERA_CHECK(first->size() <= kMaxRenderedBytes);
}

}  // namespace
}  // namespace tessera::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tessera::text::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
