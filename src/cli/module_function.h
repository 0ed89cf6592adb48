// SPDX-License-Identifier: Apache-2.0
//
// The functions of a compiled model, prefill_bs{n} and decode_bs{n}, over a session of the cpu
// target: the calling convention of the sharktank exporter with `has_prefill_position`, so that
// inputs and flagfiles mean the same here and with IREE's tools.
//
//   prefill_bs{n}: tokens [n, s], start_positions [n], seq_lens [n], seq_block_ids [n, b], cache
//                  (or without start_positions: exported without `has_prefill_position`, all are 0)
//   decode_bs{n}:  tokens [n, 1], seq_lens [n], start_positions [n], seq_block_ids [n, b], cache
//
// All but the cache are i64; the cache is f16 [pages, elements of a page], laid out as the bundle's
// manifest says. Row i computes positions [start_positions[i], seq_lens[i]) of its sequence, whose
// position p is in page seq_block_ids[i][p / stride]. Page 0 belongs to rows that only pad.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/module_input.h"

#include "base/status.h"
#include "bundle/bundle.h"
#include "runtime/load.h"
#include "runtime/session.h"

namespace tessera::cli {

struct FunctionName {
  bool is_prefill = false;
  int64_t batch = 0;
};

/// "prefill_bs4", of the sizes that the config lists. kNotFound names those there are.
Result<FunctionName> FindFunction(const bundle::ServingConfig& config, std::string_view name);
/// All of them: prefill functions first.
std::vector<std::string> FunctionNames(const bundle::ServingConfig& config);

/// Inputs to try a function with: `context` tokens of each sequence, deterministic token ids, an
/// empty cache. Decode computes position `context`.
Result<std::vector<ModuleInput>> SampleInputs(const bundle::Bundle& bundle,
                                              const FunctionName& function, int64_t context);

/// One function with its inputs, checked; Run() may be called again and again.
class ModuleFunction {
 public:
  /// kInvalidArgument names the input by its number, what it is and what is expected.
  static Result<std::unique_ptr<ModuleFunction>> Make(const bundle::Bundle& bundle,
                                                      const FunctionName& function,
                                                      const std::vector<ModuleInput>& inputs,
                                                      const runtime::LoadOptions& options);
  Status Run();
  int64_t tokens() const { return tokens_; }  // That one run computes.

 private:
  struct Row {
    std::vector<int32_t> tokens;
    int64_t start = 0;
    std::vector<runtime::PageId> pages;
  };
  std::unique_ptr<runtime::Session> session_;
  std::vector<Row> rows_;
  std::vector<std::vector<runtime::Chunk>> steps_;  // Views of rows_.
  int64_t tokens_ = 0;
};

}  // namespace tessera::cli
