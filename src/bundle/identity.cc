// SPDX-License-Identifier: Apache-2.0
#include "bundle/identity.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

namespace tessera::bundle {
namespace {

constexpr std::string_view kIdentityPrefix = "tessera.identity";
constexpr size_t kBytes = 8;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string ToHex(const formats::Splat& splat) {
  std::string text;
  for (size_t i = 0; i < kBytes; ++i)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(splat.pattern[i]));
  return text;
}

/// By file; empty where one has none.
std::vector<std::string> IdentitiesOf(const formats::ParameterIndex& archives) {
  std::vector<std::string> identities(archives.files().size());
  for (const formats::ParameterEntry& entry : archives.entries())
    if (entry.splat && entry.splat->pattern_bytes == kBytes && entry.bytes == kBytes &&
        entry.name.starts_with(kIdentityPrefix))
      identities[entry.file] = ToHex(*entry.splat);
  return identities;
}

std::string Describe(const std::string& identity) {
  return identity.empty() ? "of none that says its name" : fmt::format("of {}", identity);
}

}  // namespace

std::string IdentityEntry(std::string_view file) {
  constexpr std::string_view kExtension = ".irpa", kRank = ".rank";
  if (file.ends_with(kExtension)) file.remove_suffix(kExtension.size());
  const size_t at = file.rfind(kRank);
  return std::string(kIdentityPrefix) +
         std::string(at == std::string_view::npos ? std::string_view() : file.substr(at));
}

Result<formats::Splat> IdentitySplat(std::string_view identity) {
  formats::Splat splat;
  splat.pattern_bytes = kBytes;
  for (size_t i = 0; i < kBytes; ++i) {
    const bool whole = identity.size() == 2 * kBytes;
    const int high = whole ? HexDigit(identity[2 * i]) : -1;
    const int low = whole ? HexDigit(identity[2 * i + 1]) : -1;
    if (high < 0 || low < 0)
      return Fail(InvalidArgument(fmt::format(
          "identity \"{:.40}\": expected {} lower-case hex digits", identity, 2 * kBytes)));
    splat.pattern[i] = static_cast<std::byte>(high * 16 + low);
  }
  return splat;
}

Status CheckIdentity(const formats::ParameterIndex& archives, std::string_view expected) {
  const std::vector<std::string> identities = IdentitiesOf(archives);
  size_t first = 0;  // A file that has one.
  while (first < identities.size() && identities[first].empty()) ++first;
  if (first == identities.size()) return {};
  const auto name = [&](size_t file) { return archives.files()[file].path.filename().string(); };
  const bool listed = !expected.empty();
  const std::string wanted = listed ? std::string(expected) : identities[first];
  for (size_t i = 0; i < identities.size(); ++i)
    if (identities[i] != wanted)
      return DataLoss(fmt::format(
          "{} is of another compilation ({}, {} is of {}); put back its own file or compile again",
          name(i), Describe(identities[i]), listed ? "the manifest" : name(first), wanted));
  return {};
}

}  // namespace tessera::bundle
