// SPDX-License-Identifier: Apache-2.0
#include "gateway/store/records.h"

#include <chrono>

#include "base/random.h"

namespace tessera::gateway {

std::string MakeId(std::string_view prefix, int64_t unix_milliseconds, uint64_t random_high,
                   uint64_t random_low) {
  // In lower case, since ids become names in a cluster.
  constexpr std::string_view kDigits = "0123456789abcdefghjkmnpqrstvwxyz";
  constexpr int kTimeDigits = 10, kRandomDigits = 8;
  std::string id(prefix);
  const auto append = [&](uint64_t value, int digits) {
    for (int i = digits - 1; i >= 0; --i) id += kDigits[(value >> (5 * i)) & 31];
  };
  append(static_cast<uint64_t>(unix_milliseconds), kTimeDigits);
  append(random_high, kRandomDigits);
  append(random_low, kRandomDigits);
  return id;
}

std::string NewId(std::string_view prefix) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return MakeId(prefix, std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
                SystemRandom64(), SystemRandom64());
}

}  // namespace tessera::gateway
