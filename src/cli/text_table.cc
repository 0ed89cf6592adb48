// SPDX-License-Identifier: Apache-2.0
#include "cli/text_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/environment.h"
#include "cli/terminal.h"

#include "base/check.h"
#include "base/utf8.h"
#include "formats/printable.h"

namespace tessera::cli {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kFewestOfCut = 8;  // A column that gives way keeps so many.
constexpr std::string_view kCutMark = "...";

/// Columns of a terminal, wide characters counted as one.
size_t Width(std::string_view text) {
  return static_cast<size_t>(CodePoints(text));
}

/// At most `width` characters, with a mark where something went.
std::string Cut(std::string_view text, size_t width) {
  if (Width(text) <= width) return std::string(text);
  const size_t kept = width > kCutMark.size() ? width - kCutMark.size() : 0;
  size_t bytes = 0;
  for (size_t i = 0; i < kept; ++i) bytes += Utf8CharacterBytes(text.substr(bytes));
  return std::string(text.substr(0, bytes)) + std::string(kCutMark.substr(0, width - kept));
}

std::string_view ColourOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kGood:
      return "\033[32m";
    case Tone::kBusy:
      return "\033[33m";
    case Tone::kBad:
      return "\033[31m";
  }
  return "";
}

std::string Coloured(std::string text, Tone tone, const TableStyle& style) {
  if (!style.has_colour || tone == Tone::kPlain || text.empty()) return text;
  return std::string(ColourOf(tone)) + text + "\033[0m";
}

std::string Capitals(std::string_view title) {
  std::string text(title);
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return text;
}

}  // namespace

TableStyle StdoutStyle() {
  if (!StdoutIsTerminal()) return {};
  winsize size{};
  TableStyle style{.columns = 80,
                   .has_colour = !Environment("NO_COLOR") && Environment("TERM") != "dumb"};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.columns = size.ws_col;
  return style;
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  TESSERA_CHECK(!columns_.empty());
}

void TextTable::Add(std::vector<Cell> cells) {
  TESSERA_CHECK(cells.size() == columns_.size());
  for (Cell& cell : cells) cell.text = formats::Printable(cell.text);
  rows_.push_back(std::move(cells));
}

std::vector<size_t> TextTable::Widths(int columns) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(Width(column.title));
  for (const std::vector<Cell>& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i].text));
  if (columns <= 0) return widths;
  size_t total = kGap * (widths.size() - 1);
  for (const size_t width : widths) total += width;
  const auto room = static_cast<size_t>(columns);
  if (total <= room) return widths;
  const auto found = std::ranges::find(columns_, true, &Column::gives_way);
  const auto at = static_cast<size_t>(
      found == columns_.end() ? columns_.end() - columns_.begin() - 1 : found - columns_.begin());
  const size_t over = total - room;
  widths[at] = std::max(std::min(widths[at], kFewestOfCut),
                        widths[at] > over ? widths[at] - over : size_t{0});
  return widths;
}

std::string TextTable::Render(const TableStyle& style) const {
  const std::vector<size_t> widths = Widths(style.columns);
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    size_t blanks = 0;  // Written only when something follows.
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Cell cell = cell_of(i);
      std::string shown = Cut(cell.text, widths[i]);
      const size_t rest = widths[i] - std::min(widths[i], Width(shown));
      if (columns_[i].is_right) blanks += rest;
      if (!shown.empty()) {
        line.append(blanks, ' ');
        blanks = 0;
        line += Coloured(std::move(shown), cell.tone, style);
      }
      if (!columns_[i].is_right) blanks += rest;
      blanks += kGap;
    }
    text += line + "\n";
  };
  add_line([&](size_t i) { return Cell{.text = Capitals(columns_[i].title)}; });
  for (const std::vector<Cell>& row : rows_) add_line([&](size_t i) { return row[i]; });
  return text;
}

std::string FactLines(const std::vector<std::pair<std::string_view, Cell>>& facts,
                      const TableStyle& style) {
  size_t width = 0;
  for (const auto& [name, cell] : facts) width = std::max(width, Width(name));
  std::string text;
  for (const auto& [name, cell] : facts) {
    std::string_view rest = cell.text;
    for (bool is_first = true; is_first || !rest.empty(); is_first = false) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view label = is_first ? name : std::string_view();
      text += label;
      if (end > 0) text.append(width + kGap - Width(label), ' ');
      text += Coloured(formats::Printable(rest.substr(0, end)), cell.tone, style) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return text;
}

}  // namespace tessera::cli
