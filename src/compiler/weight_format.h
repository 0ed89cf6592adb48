// SPDX-License-Identifier: Apache-2.0
//
// In which format a weight is stored: what `--quantize` asks for, else the source's own wherever
// kernels compute with it, else the nearest that holds its values, or a refusal by name. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace tessera::compiler {

struct WeightFormat {
  tensor::DType dtype = tensor::DType::kF32;
  std::string note;           // "converted from IQ4_XS"; empty when the source's bytes are kept.
  bool is_quantised = false;  // By us, from floats: scales are fitted (tensor/quantise_fit.h).
  bool is_exact = true;       // Holds the source's values, to float32's precision.
  std::string_view why = {};  // Of a conversion, for people: "no kernel computes with it".
};

/// Where a matrix stands, which decides how much it suffers from few bits.
struct MatrixRole {
  enum class Kind : uint8_t { kTable, kHead, kValue, kDown, kOther } kind = Kind::kOther;
  int64_t layer = 0;  // Of kValue, kDown, kOther.
  int64_t layers = 1;
};

/// What `quantize` makes of float matrices: the type that gives it its name, and for q4_k (as
/// llama.cpp's q4_k_m), q4_0 and q4_1 a finer one, Q6_K, where errors count most:
///   the head and the embedding table;
///   in q4_k also the value and down projections of the first and last eighth of the layers, and of
///   every third between.
/// k-quants have blocks of 256 inputs: where those do not divide k, Q4_K becomes Q5_0 and Q6_K
/// becomes Q8_0, with blocks of 32. Nothing when those do not either, or for "none".
std::optional<tensor::DType> QuantisedType(std::string_view quantize, const MatrixRole& role,
                                           int64_t k);

/// Instead of a quantisation: formats that hold every value of the source, whatever they cost. What
/// certificates compare with; no user asks for it.
inline constexpr std::string_view kExactFormats = "exact";

/// Values of `quantize` that name a quantisation, finest first.
std::span<const std::string_view> Quantisations();

/// For a matrix that a matmul reads, k inputs. `quantize` applies to float sources only.
///   BF16 with fewer than 512 inputs -> F32 (exact)
///   kept:     what else kernels::CanPack takes
///   F64 -> F32; F8 -> F16 (exact); formats of tensor/transcode.h -> Q8_0 or Q6_K, codes kept;
///   other block formats (Q2_K, IQ2_XS, IQ2_S, IQ1_M) -> F16, rounding each weight by at most 2^-11
///   for kExactFormats F32 where that would round
/// kUnimplemented for anything else.
Result<WeightFormat> ChooseMatrixFormat(tensor::DType source, int64_t k, std::string_view quantize,
                                        const MatrixRole& role = {});

/// For an embedding table of its own: rows are looked up, never multiplied, so they stay as they
/// are unless `quantize` says otherwise.
Result<WeightFormat> ChooseTableFormat(tensor::DType source, int64_t k, std::string_view quantize);

/// kInvalidArgument unless `quantize` is "none" or in Quantisations().
Status CheckQuantize(std::string_view quantize);

}  // namespace tessera::compiler
