// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "bundle/shard.h"

namespace tessera::cli {

Result<int64_t> ParseRanks(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("tp")) digits.remove_prefix(2);
  static_assert(bundle::kMaxRanks < 10);
  if (digits.size() == 1 && digits[0] >= '1' && digits[0] - '0' <= bundle::kMaxRanks)
    return digits[0] - '0';
  return Fail(
      InvalidArgument(fmt::format("\"{:.40}\": expected tp1 to tp{}", text, bundle::kMaxRanks)));
}

void AddRankOptions(CLI::App* verb, compiler::CompileOptions* compile) {
  const CLI::Validator ranks(
      [](std::string& text) {
        const Result<int64_t> parsed = ParseRanks(text);
        return parsed.has_value() ? std::string() : parsed.error().message();
      },
      "");
  verb->add_option_function<std::string>(
          "--tp,--tensor-parallel-size,--sharding-mode",
          [compile](const std::string& text) { compile->tensor_parallel = *ParseRanks(text); },
          "Tensor parallelism: tp1 to tp8, or the number; a divisor of the model's KV heads")
      ->check(ranks)
      ->default_str("tp1");
  verb->add_flag("--allow-uneven", compile->allow_uneven,
                 "Deal KV heads that --tp does not divide unevenly");
}

}  // namespace tessera::cli
