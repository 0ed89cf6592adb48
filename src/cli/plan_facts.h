// SPDX-License-Identifier: Apache-2.0
//
// What `plan` reckons with: sizes of a model, from the headers of its repository or from a bundle's
// manifest and program. No weight is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/hub_options.h"

#include "base/status.h"
#include "tensor/dtype.h"

namespace tessera::cli {

struct PlanFacts {
  std::string name;           // Family of a repository ("llama"), model of a bundle.
  int64_t parameters = 0;     // Elements.
  int64_t layer_weights = 0;  // Of these, without embedding table and head.
  tensor::DType format = tensor::DType::kF32;  // That most of the matrices' bytes have.
  bool has_kernels = false;                    // For `format`.
  int64_t context = 0;                         // Planned for.
  uint64_t weight_bytes = 0;
  uint64_t bytes_read_per_step = 0;  // Weights that one token's step reads.
  uint64_t kv_bytes = 0;             // Of a sequence as long as `context`.
  uint64_t kv_bytes_per_token = 0;
  uint64_t source_bytes = 0;  // On disk; 0 for a bundle.
  uint64_t bundle_bytes = 0;
  std::vector<std::string> warnings;
};

/// `model` as every verb takes it. `context` 0: the model's own; kInvalidArgument with both numbers
/// when it is more than that.
Result<PlanFacts> ReadPlanFacts(const std::string& model, const HubOptions& hub, int64_t context);

}  // namespace tessera::cli
