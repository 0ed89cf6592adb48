// SPDX-License-Identifier: Apache-2.0
#include "cli/validators.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

#include "cli/byte_size.h"

namespace tessera::cli {

CLI::Validator AtLeast(int64_t least) {
  const auto check = [least](const std::string& text) -> std::string {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least) return {};
    return fmt::format("\"{:.40}\": expected a whole number of at least {}", text, least);
  };
  return CLI::Validator(check, fmt::format(">={}", least));
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

CLI::Validator NotEmpty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "is empty; leave the flag out instead" : "";
  };
  return CLI::Validator(check, "");
}

}  // namespace tessera::cli
