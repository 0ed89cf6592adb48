// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tessera::engine {
namespace {

std::vector<size_t> Borders(std::string_view text) {
  std::vector<size_t> border(text.size(), 0);
  for (size_t i = 1, k = 0; i < text.size(); ++i) {
    while (k > 0 && text[i] != text[k]) k = border[k - 1];
    if (text[i] == text[k]) ++k;
    border[i] = k;
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops, bool is_included)
    : is_included_(is_included) {
  for (std::string& stop : stops) {
    TESSERA_CHECK(!stop.empty());
    std::vector<size_t> borders = Borders(stop);
    patterns_.push_back({std::move(stop), std::move(borders)});
  }
}

void StopMatcher::Advance(Pattern* pattern, char byte) {
  size_t& state = pattern->state;
  while (state > 0 && byte != pattern->text[state]) state = pattern->fallback[state - 1];
  if (byte == pattern->text[state]) ++state;
}

std::string StopMatcher::Push(std::string_view text) {
  if (matched()) return {};
  size_t partial = 0;  // Longest beginning of a stop string at the end of what was seen.
  for (size_t i = 0; i < text.size(); ++i) {
    const Pattern* longest = nullptr;
    partial = 0;
    for (Pattern& pattern : patterns_) {
      Advance(&pattern, text[i]);
      if (pattern.state == pattern.text.size() &&
          (longest == nullptr || pattern.state > longest->text.size()))
        longest = &pattern;
      partial = std::max(partial, pattern.state);
    }
    if (longest == nullptr) continue;
    match_ = longest->text;
    held_ += text.substr(0, i + 1);
    if (!is_included_) held_.resize(held_.size() - match_.size());
    return std::exchange(held_, {});
  }
  held_ += text;
  if (text.empty()) return {};
  std::string certain = held_.substr(0, held_.size() - partial);
  held_.erase(0, held_.size() - partial);
  return certain;
}

std::string StopMatcher::Flush() {
  return std::exchange(held_, {});
}

}  // namespace tessera::engine
