// SPDX-License-Identifier: Apache-2.0
//
// Reports of benchmark-module: Google Benchmark's own, with the rows and names that
// iree-benchmark-module has. Two things differ from what the library alone would print: a fixed
// number of iterations is no part of a row's name, and "library_build_type" (with its warning)
// speaks of this program, not of how a distribution built the library around its loop.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <optional>
#include <string_view>

namespace tessera::cli {

struct ModuleReportStyle {
  bool in_color = false;
  bool tabular = false;  // Counters in columns.
};

/// `format` is console, json or csv.
std::unique_ptr<benchmark::BenchmarkReporter> MakeModuleReporter(std::string_view format,
                                                                 ModuleReportStyle style);

/// A value of --benchmark_min_time: "0.5" and "0.5s" are seconds, "10x" is a number of iterations.
struct MinTime {
  double seconds = 0;
  int64_t iterations = 0;  // 0: by time.
};
/// Nothing when it is neither, negative, or no iteration at all.
std::optional<MinTime> ParseMinTime(std::string_view text);

}  // namespace tessera::cli
