// SPDX-License-Identifier: Apache-2.0
//
// ApiKey: one key and what it may do. The key itself is never kept, only its SHA-256: keys are
// random numbers of 256 bits, so there is nothing that a slow hash (bcrypt, Argon2) would protect
// better. Those exist for passwords, which can be guessed; and they would cost every request more
// than its tokens. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::access {

/// What a key may call. None includes another.
enum class Scope : uint8_t { kInference, kMetrics, kAdmin };
inline constexpr int kScopeCount = 3;

/// "inference", "metrics", "admin".
std::string_view ScopeName(Scope scope);
std::optional<Scope> ScopeNamed(std::string_view name);
constexpr unsigned ScopeBit(Scope scope) {
  return 1u << static_cast<unsigned>(scope);
}

/// 0: no limit.
struct KeyLimits {
  int64_t requests_per_minute = 0;
  int64_t tokens_per_minute = 0;  // Of prompts and answers.
  int64_t concurrency = 0;        // Calls that generate, open at the same time.

  bool operator==(const KeyLimits&) const = default;
};

struct ApiKey {
  std::string name;    // For logs, statistics and errors; unique.
  std::string digest;  // DigestOf the key.
  unsigned scopes = ScopeBit(Scope::kInference);
  /// Its class: what requests get that name no priority, and the best that they may name (lesser
  /// numbers come first). Absent: requests may name any, and get 0.
  std::optional<int32_t> priority{};
  KeyLimits limits{};
  std::optional<int64_t> expires{};  // Unix seconds; from then on it is no key.

  bool Has(Scope scope) const { return (scopes & ScopeBit(scope)) != 0; }
  bool operator==(const ApiKey&) const = default;
};

/// SHA-256 as 64 lower-case hexadecimal digits.
std::string DigestOf(std::string_view key);
/// A new one from the system's randomness: "tessera-" and 43 characters, 256 bits.
std::string MakeKey();

/// "2027-01-31" (its beginning) or "2027-01-31T12:00:00Z" -> Unix seconds. Nothing for all else.
std::optional<int64_t> ParseUtcTime(std::string_view text);
/// "2027-01-31T12:00:00Z".
std::string FormatUtcTime(int64_t unix_seconds);

}  // namespace tessera::access
