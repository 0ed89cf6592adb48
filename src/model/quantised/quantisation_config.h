// SPDX-License-Identifier: Apache-2.0
//
// "quantization_config" of a config.json: how the matrices of a quantised Hugging Face repository
// are packed. Read: GPTQ with 4 and 8 bits (AutoGPTQ, GPTQModel), AWQ with 4 bits in its "gemm"
// layout (AutoAWQ), compressed-tensors "pack-quantized" with 4 and 8 bits and "float-quantized",
// FP8 with a scale a tensor, a row or a block (DeepSeek, Qwen3, AutoFP8, fbgemm, ModelOpt).
// Everything else is refused by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace tessera::model {

enum class QuantisationMethod : uint8_t { kGptq, kAwq, kPackedInts, kFp8 };

struct Quantisation {
  QuantisationMethod method = QuantisationMethod::kGptq;
  std::string name;  // As the config spells it: "gptq", "compressed-tensors", ...
  int64_t bits = 4;
  /// Inputs that share a scale; nothing: all of a row.
  std::optional<int64_t> group_size;
  /// Every zero point is the middle code: 8 of 4 bits, 128 of 8.
  bool symmetric = false;
  /// GPTQ's first format stores zero points minus one.
  bool zeros_minus_one = false;
  /// Rows and columns of the blocks that share a scale, of FP8 by blocks; 0: it has none.
  int64_t block_rows = 0;
  int64_t block_columns = 0;
  bool operator==(const Quantisation&) const = default;
};

/// `config` is the object under "quantization_config". kUnimplemented names the method, format, key
/// or value that we lack, kInvalidArgument one out of range.
Result<Quantisation> ReadQuantisation(const json::Object& config);

/// Of a whole config.json: nothing for one that is not quantised.
Result<std::optional<Quantisation>> FindQuantisation(const json::Object& hf_config);

/// A file beside config.json that says it instead, as older packers and ModelOpt write it.
struct QuantisationFile {
  std::string_view name;    // "quantize_config.json"
  std::string_view method;  // Where the file names none.
  std::string_view inside;  // The member that holds it; empty: the file itself.
};
std::span<const QuantisationFile> QuantisationFiles();
/// As ReadQuantisation; kInvalidArgument where the member is missing.
Result<Quantisation> ReadQuantisationFile(const json::Object& text, const QuantisationFile& file);

}  // namespace tessera::model
