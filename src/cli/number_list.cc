// SPDX-License-Identifier: Apache-2.0
#include "cli/number_list.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <string>

namespace tessera::cli {
namespace {

/// Far above any count of tokens; products of two stay in int64_t.
/// Takes digits from the front.
std::optional<int64_t> TakeNumber(std::string_view* text) {
  int64_t value = 0;
  if (text->empty() || text->front() < '0' || text->front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || value > kMaxNumber) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return value;
}

bool TakeChar(std::string_view* text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

struct Range {
  int64_t first = 0, last = 0;
  int64_t add = 1, multiply = 1;  // next = value * multiply + add
};

std::optional<Range> ParseRange(std::string_view item) {
  const auto first = TakeNumber(&item);
  if (!first) return std::nullopt;
  Range range{*first, *first};
  if (TakeChar(&item, '-')) {
    const auto last = TakeNumber(&item);
    if (!last || *last < *first) return std::nullopt;
    range.last = *last;
    const bool adds = TakeChar(&item, '+'), multiplies = !adds && TakeChar(&item, '*');
    if (adds || multiplies) {
      const auto step = TakeNumber(&item);
      if (!step || *step < (multiplies ? 2 : 1)) return std::nullopt;
      if (multiplies && *first == 0) return std::nullopt;  // Would never leave 0.
      range.add = adds ? *step : 0;
      range.multiply = multiplies ? *step : 1;
    }
  }
  return item.empty() ? std::optional(range) : std::nullopt;
}

}  // namespace

Result<std::vector<int64_t>> ParseNumberList(std::string_view text, int64_t least, int64_t most) {
  std::vector<int64_t> numbers;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    more = comma != std::string_view::npos;
    text.remove_prefix(more ? comma + 1 : text.size());
    const std::optional<Range> range = ParseRange(item);
    if (!range || range->first < least || range->last > most)
      return Fail(
          InvalidArgument(fmt::format("\"{:.40}\": expected whole numbers from {} to {}: "
                                      "512, 1,2,4, 128-512+128 or 1-32*2",
                                      item, least, most)));
    for (int64_t n = range->first; n <= range->last; n = n * range->multiply + range->add) {
      if (numbers.size() == kMaxNumbers)
        return Fail(
            InvalidArgument(fmt::format("\"{:.40}\": more than {} numbers", item, kMaxNumbers)));
      numbers.push_back(n);
    }
  }
  return numbers;
}

CLI::Validator NumberList(int64_t least, int64_t most) {
  const auto check = [=](const std::string& text) -> std::string {
    const auto numbers = ParseNumberList(text, least, most);
    return numbers.has_value() ? "" : numbers.error().message();
  };
  return CLI::Validator(check, "LIST");
}

}  // namespace tessera::cli
