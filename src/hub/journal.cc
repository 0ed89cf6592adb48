// SPDX-License-Identifier: Apache-2.0
#include "hub/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "hub/limits.h"

namespace tessera::hub {
namespace {

constexpr std::string_view kMagic = "tessera-download 1 ";
constexpr std::string_view kBoot = "boot ";
constexpr std::string_view kRange = "range ";
constexpr std::string_view kSynced = "synced ";

/// Up to the next end of line, which it takes away; nothing for a rest that has none.
std::optional<std::string_view> TakeLine(std::string_view* text) {
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return line;
}

std::optional<uint64_t> TakeNumber(std::string_view* text, char end_mark) {
  uint64_t value = 0;
  const char* begin = text->data();
  const auto [end, error] = std::from_chars(begin, begin + text->size(), value);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - begin));
  if (end_mark == '\0') return text->empty() ? std::optional(value) : std::nullopt;
  if (!text->starts_with(end_mark)) return std::nullopt;
  text->remove_prefix(1);
  return value;
}

std::optional<ByteRange> ParseRange(std::string_view rest, uint64_t size) {
  const auto begin = TakeNumber(&rest, ' ');
  if (!begin) return std::nullopt;
  const auto end = TakeNumber(&rest, '\0');
  if (!end || *end <= *begin || *end > size) return std::nullopt;
  return ByteRange{*begin, *end};
}

}  // namespace

Result<Journal> ReadJournal(std::string_view text, std::string_view boot) {
  const auto first = TakeLine(&text);
  if (!first || !first->starts_with(kMagic))
    return Fail(DataLoss("the state of a download does not begin as expected"));
  std::string_view rest = first->substr(kMagic.size());
  const auto size = TakeNumber(&rest, ' ');
  if (!size || *size > kMaxFileBytes || rest.empty() || ValidatorWord(rest) != rest)
    return Fail(DataLoss("the state of a download has no size and validator"));
  const auto second = TakeLine(&text);
  if (!second || !second->starts_with(kBoot))
    return Fail(DataLoss("the state of a download does not say when it was written"));
  const bool is_this_boot = !boot.empty() && second->substr(kBoot.size()) == boot;
  Journal journal;
  journal.bytes = *size;
  journal.validator = rest;
  std::vector<ByteRange> ranges;
  size_t synced = 0;
  while (auto line = TakeLine(&text)) {
    if (line->starts_with(kRange)) {
      const auto range = ParseRange(line->substr(kRange.size()), journal.bytes);
      if (!range) break;
      ranges.push_back(*range);
    } else if (line->starts_with(kSynced)) {
      line->remove_prefix(kSynced.size());
      const auto count = TakeNumber(&*line, '\0');
      if (!count || *count > ranges.size()) break;
      synced = std::max<size_t>(synced, *count);
    } else {
      break;
    }
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (i < synced) journal.synced.Add(ranges[i]);
    if (i < synced || is_this_boot) journal.present.Add(ranges[i]);
  }
  return journal;
}

JournalText WriteJournal(const Journal& journal, std::string_view boot) {
  JournalText out;
  out.text = fmt::format("{}{} {}\n{}{}\n", kMagic, journal.bytes, journal.validator, kBoot, boot);
  for (const ByteRange& range : journal.synced.Ranges()) {
    out.text += JournalRangeLine(range);
    ++out.ranges;
  }
  if (out.ranges > 0) out.text += JournalSyncedLine(out.ranges);
  if (journal.present.bytes() == journal.synced.bytes()) return out;
  for (const ByteRange& range : journal.present.Ranges()) {
    out.text += JournalRangeLine(range);
    ++out.ranges;
  }
  return out;
}

std::string JournalRangeLine(ByteRange range) {
  return fmt::format("{}{} {}\n", kRange, range.begin, range.end);
}

std::string JournalSyncedLine(uint64_t ranges) {
  return fmt::format("{}{}\n", kSynced, ranges);
}

std::string ValidatorWord(std::string_view validator) {
  std::string word;
  for (const char c : validator) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f) {
      word += c;
    } else {
      word += fmt::format("%{:02x}", byte);
    }
  }
  return word.empty() ? "-" : word;
}

}  // namespace tessera::hub
