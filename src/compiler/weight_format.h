// SPDX-License-Identifier: Apache-2.0
//
// In which format a weight is stored: the source's own wherever kernels compute with it, else the
// nearest that holds its values, or a refusal by name. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "formats/parameter_index.h"
#include "tensor/dtype.h"

namespace tessera::compiler {

struct WeightFormat {
  tensor::DType dtype = tensor::DType::kF32;
  std::string note;  // "converted from IQ4_XS"; empty when the source's bytes are kept.
};

/// For a matrix that a matmul reads, k inputs. `quantize` as in CompileOptions; it applies to
/// float sources only, and to those whose rows are whole blocks.
///   BF16 with fewer than 512 inputs -> F32 (exact)
///   kept:     what else kernels::CanPack takes
///   F64 -> F32; F8 -> F16 (exact); formats of tensor/transcode.h -> Q8_0 or Q6_K, codes kept;
///   other block formats (Q2_K, IQ2_XS, IQ2_S, IQ1_M) -> F16, rounding each weight by at most 2^-11
/// kUnimplemented for anything else.
Result<WeightFormat> ChooseMatrixFormat(tensor::DType source, int64_t k,
                                        const std::string& quantize);

/// kInvalidArgument unless `quantize` is one that ChooseMatrixFormat knows.
Status CheckQuantize(const std::string& quantize);

/// The same for a matrix of the source. kNotFound names a parameter that is not there.
Result<WeightFormat> MatrixFormatOf(const formats::ParameterIndex& index, const std::string& name,
                                    const std::string& quantize);

}  // namespace tessera::compiler
