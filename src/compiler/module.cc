// SPDX-License-Identifier: Apache-2.0
#include "compiler/module.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/pack.h"

namespace tessera::compiler {

int64_t CountRows(const RowRuns& runs) {
  int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.count;
  return rows;
}

RowRuns Slice(const RowRuns& runs, int64_t begin, int64_t count) {
  RowRuns slice;
  int64_t end = begin + count;
  for (const RowRun& run : runs) {
    const int64_t from = std::clamp<int64_t>(begin, 0, run.count);
    const int64_t to = std::clamp<int64_t>(end, 0, run.count);
    if (from < to) slice.push_back({run.source, run.first + from * run.step, to - from, run.step});
    begin -= run.count;
    end -= run.count;
  }
  TESSERA_CHECK(CountRows(slice) == count);
  return slice;
}

int64_t PaddedFfnColumns(int64_t columns) {
  return kernels::GroupCount(columns) * kernels::kGroupRows;
}

}  // namespace tessera::compiler
