// SPDX-License-Identifier: Apache-2.0
#include "cli/validators.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "cli/byte_size.h"

#include "base/utf8.h"

namespace tessera::cli {
namespace {

/// The whole of `text` as a number; nothing when it is none or does not fit.
template <typename T>
std::optional<T> Parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool HasUpperBound(int64_t high) {
  return high != std::numeric_limits<int64_t>::max();
}

/// "" or why `text` is no whole number from `low` to `high`.
std::string CheckWholeNumber(std::string_view text, int64_t low, int64_t high) {
  const std::optional<int64_t> value = Parse<int64_t>(text);
  if (value.has_value() && *value >= low && *value <= high) return {};
  return HasUpperBound(high)
             ? fmt::format("\"{:.40}\": expected a whole number from {} to {}", text, low, high)
             : fmt::format("\"{:.40}\": expected a whole number of at least {}", text, low);
}

std::string RangeName(int64_t low, int64_t high) {
  return HasUpperBound(high) ? fmt::format("{}..{}", low, high) : fmt::format(">={}", low);
}

}  // namespace

CLI::Validator WholeNumber(int64_t low, int64_t high) {
  return CLI::Validator([=](const std::string& text) { return CheckWholeNumber(text, low, high); },
                        RangeName(low, high));
}

CLI::Validator Number(double low, double high) {
  const auto check = [=](const std::string& text) -> std::string {
    const std::optional<double> value = Parse<double>(text);
    if (value.has_value() && *value >= low && *value <= high) return {};  // NaN is not.
    return fmt::format("\"{:.40}\": expected a number from {} to {}", text, low, high);
  };
  return CLI::Validator(check, fmt::format("{}..{}", low, high));
}

CLI::Validator ByteSize() {
  const auto convert = [](std::string& text) -> std::string {
    const Result<uint64_t> bytes = ParseByteSize(text);
    if (!bytes.has_value()) return bytes.error().message();
    text = fmt::to_string(*bytes);
    return {};
  };
  return CLI::Validator(convert, "SIZE");
}

CLI::Validator ByteSizeOrOff() {
  const auto convert = [size = ByteSize()](std::string& text) -> std::string {
    if (text != "off") return size(text);
    text = "0";
    return {};
  };
  return CLI::Validator(convert, "SIZE|off");
}

std::optional<uint64_t> ParseSeed(std::string_view text) {
  return Parse<uint64_t>(text);
}

CLI::Validator Seed() {
  const auto check = [](const std::string& text) -> std::string {
    if (text == kDrawnSeed || ParseSeed(text).has_value()) return {};
    return fmt::format("\"{:.40}\": expected a whole number from 0 to {}, or {} for a drawn seed",
                       text, std::numeric_limits<uint64_t>::max(), kDrawnSeed);
  };
  return CLI::Validator(check, "SEED");
}

CLI::Validator NotEmpty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "is empty; leave the flag out instead" : "";
  };
  return CLI::Validator(check, "");
}

CLI::Validator PlainText() {
  const auto check = [](const std::string& text) -> std::string {
    if (text.empty()) return "is empty; leave the flag out instead";
    const bool has_control = std::any_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (has_control) return "holds a line end or another control character";
    return IsUtf8(text) ? "" : "is no UTF-8 text";
  };
  return CLI::Validator(check, "");
}

}  // namespace tessera::cli
