// SPDX-License-Identifier: Apache-2.0
#include "cli/byte_size.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace tessera::cli {
namespace {

constexpr double kMaxBytes = 4611686018427387904.0;  // 2^62

/// The factor of "k", "Gi", "MB", ...; nothing for an unknown unit.
std::optional<double> Factor(std::string_view unit) {
  if (unit.ends_with('B') || unit.ends_with('b')) unit.remove_suffix(1);
  if (unit.empty()) return 1.0;
  const bool binary = unit.size() == 2 && unit[1] == 'i';
  if (unit.size() != 1 && !binary) return std::nullopt;
  constexpr std::string_view kSmall = "kmgt", kLarge = "KMGT";
  size_t power = kSmall.find(unit[0]);
  if (power == std::string_view::npos) power = kLarge.find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  double factor = 1;
  for (size_t i = 0; i <= power; ++i) factor *= binary ? 1024 : 1000;
  return factor;
}

}  // namespace

Result<uint64_t> ParseByteSize(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const std::optional<double> factor = Factor(unit);
  const double bytes = error == std::errc() && factor.has_value() ? number * *factor : 0;
  if (!(bytes >= 1 && bytes <= kMaxBytes))
    return Fail(InvalidArgument(fmt::format(
        "\"{:.40}\" is no size; expected bytes such as 4096, 512M, 1.5G or 2Gi", text)));
  return static_cast<uint64_t>(bytes);
}

}  // namespace tessera::cli
