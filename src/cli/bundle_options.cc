// SPDX-License-Identifier: Apache-2.0
#include "cli/bundle_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "compiler/quantise_choice.h"

namespace tessera::cli {
namespace {

struct FlagValue {
  std::string_view flag;
  std::string wanted;
  std::string present;
};

std::string Option(const bundle::Manifest& manifest, const std::string& name) {
  const auto found = manifest.options.find(name);
  return found == manifest.options.end() ? "unknown" : found->second;
}

/// The cpu targets share one program and layout.
std::string_view TargetFamily(std::string_view target) {
  return target.starts_with("x86-64-v") ? "cpu" : target;
}

std::string Number(int64_t value, const std::string& present) {
  return value == 0 ? present : fmt::to_string(value);
}

}  // namespace

Status CheckAgainstBundle(const bundle::Manifest& manifest, const compiler::CompileOptions& options,
                          const FlagGiven& given) {
  const std::string quantization =
      manifest.quantization == "source" ? "none" : manifest.quantization;
  const std::string max_seq_len = Option(manifest, "max_seq_len");
  const std::string block_count = Option(manifest, "device_block_count");
  const FlagValue values[] = {
      {"--compile-target", std::string(TargetFamily(options.target)), manifest.target},
      {"--sharding-mode", fmt::format("tp{}", options.tensor_parallel),
       fmt::format("tp{}", manifest.tensor_parallel)},
      {"--quantize", options.quantize == compiler::kAutoQuantize ? quantization : options.quantize,
       quantization},
      {"--max-seq-len", Number(options.max_seq_len, max_seq_len), max_seq_len},
      {"--block-seq-stride", fmt::to_string(options.page_tokens), Option(manifest, "page_tokens")},
      {"--device-block-count", Number(options.device_block_count, block_count), block_count},
      {"--bs-prefill", fmt::format("{}", fmt::join(options.prefill_batch_sizes, ",")),
       Option(manifest, "prefill_batch_sizes")},
      {"--bs-decode", fmt::format("{}", fmt::join(options.decode_batch_sizes, ",")),
       Option(manifest, "decode_batch_sizes")}};
  for (const FlagValue& value : values) {
    if (value.wanted == value.present || !given(value.flag)) continue;
    return FailedPrecondition(fmt::format(
        "{} {} cannot change a bundle that is made with {}; compile {} from its repository again, "
        "or leave the flag out",
        value.flag, value.wanted, value.present, manifest.model));
  }
  return {};
}

}  // namespace tessera::cli
