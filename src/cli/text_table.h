// SPDX-License-Identifier: Apache-2.0
//
// TextTable: rows under titles, in columns as wide as their widest cell. Cells are shown as
// formats/printable.h makes them fit; on a terminal one column gives way so that no row breaks, and
// a cell may have a colour. Plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::cli {

enum class Tone : uint8_t { kPlain, kGood, kBusy, kBad };

struct Cell {
  std::string text{};
  Tone tone = Tone::kPlain;
};

struct Column {
  std::string_view title;
  bool is_right = false;   // Numbers.
  bool gives_way = false;  // Is cut first when a row has no room; the last column otherwise.
};

/// Where a table goes.
struct TableStyle {
  int columns = 0;  // 0: any number, as for a file or a pipe.
  bool has_colour = false;
};
/// Of stdout: the terminal's width, and colours unless $NO_COLOR or TERM=dumb.
TableStyle StdoutStyle();

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  /// As many cells as columns (CHECK).
  void Add(std::vector<Cell> cells);
  bool is_empty() const { return rows_.empty(); }
  /// Lines with '\n', titles first in capitals; no blanks at the ends of lines.
  std::string Render(const TableStyle& style) const;

 private:
  std::vector<size_t> Widths(int columns) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;  // Made printable.
};

/// "name    smol\nstatus  READY\n": facts of one thing; a text of several lines goes on below.
std::string FactLines(const std::vector<std::pair<std::string_view, Cell>>& facts,
                      const TableStyle& style);

}  // namespace tessera::cli
