// SPDX-License-Identifier: Apache-2.0
//
// LookupTables: embedding tables of which a step reads only the rows of its tokens. A page fault
// maps the whole folio around a row, some hundred kilobytes, so a prompt of a few hundred tokens
// would leave most of a table resident that it read a megabyte of. What was read leaves the
// process's memory again; the page cache keeps it. For the thread that runs steps.
#pragma once

#include <cstdint>
#include <vector>

#include "bundle/program.h"
#include "formats/parameter_index.h"

namespace tessera::runtime {

class LookupTables {
 public:
  /// Those of `program` that are worth it; none of them need be.
  LookupTables(const bundle::Program& program, const formats::ParameterIndex& archive);

  /// After a step of so many tokens, while no worker runs. Pages are given back when enough rows
  /// have been read since the last time, which takes microseconds.
  void HasRead(int64_t tokens, const formats::ParameterIndex& archive);

  bool empty() const { return entries_.empty(); }

 private:
  std::vector<size_t> entries_;  // Of the archive.
  int64_t rows_ = 0;             // Read and not given back.
};

}  // namespace tessera::runtime
