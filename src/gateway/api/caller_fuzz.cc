// SPDX-License-Identifier: Apache-2.0
//
// Any Authorization header: a user that is accepted is printable and short, and every refusal is a
// 401. Base 64 is decoded to as many bytes as its digits hold.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "gateway/api/caller.h"
#include "gateway/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tessera::gateway::DecodeBase64;
  using tessera::gateway::kUserBytesMax;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = DecodeBase64(text); bytes.has_value()) {
    const size_t digits = text.find_last_not_of('=') + 1;
    TESSERA_CHECK(bytes->size() == digits * 3 / 4);
  }
  tessera::net::Request request;
  request.headers.Set("Authorization", text);
  const auto user = tessera::gateway::UserOf(request);
  if (!user.has_value()) {
    TESSERA_CHECK(user.error().status == 401);
    return 0;
  }
  TESSERA_CHECK(!user->empty() && user->size() <= kUserBytesMax);
  TESSERA_CHECK(std::ranges::all_of(*user, [](char c) { return c > 0x20 && c < 0x7f; }));
  return 0;
}
