// SPDX-License-Identifier: Apache-2.0
#include "cli/validators.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

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

}  // namespace tessera::cli
