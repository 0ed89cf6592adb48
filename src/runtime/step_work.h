// SPDX-License-Identifier: Apache-2.0
//
// StepWork: what a step of a program must do at the least, from the program alone: every weight it
// needs read once, K and V of every sequence read once, the multiply-accumulates of its rows. From
// the last attention on only rows that want logits have to be computed.
// Against SessionStats it says what an implementation does twice; divided by a machine's rates it
// is the bound of the step's time:
//
//   time >= max(bytes / read bandwidth, sum over formats of 2 * MACs / ops a second)
//
// (the roofline of Williams, Waterman, Patterson, CACM 52(4), 2009, with both sides overlapped.)
// Embedding rows, norm weights, activations and the writing of K and V are not counted: together
// they are below 1% of a decode step. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "bundle/program.h"
#include "kernels/attention.h"
#include "runtime/machine_probe.h"
#include "tensor/dtype.h"

namespace tessera::runtime {

/// Rows of one sequence in a step: positions [start, start + rows).
struct ChunkShape {
  int64_t start = 0;
  int64_t rows = 1;
  int64_t logit_rows = 1;  // The last ones.
};

struct StepWork {
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  std::map<tensor::DType, uint64_t> matmul_macs;  // By weight format.
  uint64_t attention_macs = 0;

  uint64_t bytes() const { return weight_bytes + kv_bytes; }
  uint64_t macs() const;
};

/// The parts of a program that a step's work depends on. `program` must be verified.
class ProgramWork {
 public:
  explicit ProgramWork(const bundle::Program& program,
                       kernels::KvType kv_type = kernels::KvType::kF16);

  StepWork Of(std::span<const ChunkShape> chunks) const;

 private:
  struct Part {
    uint64_t bytes = 0;
    std::map<tensor::DType, uint64_t> macs_per_row;
  };
  struct Attention {
    int64_t window = 0;
    uint64_t macs_per_position = 0;
    uint64_t bytes_per_position = 0;
  };

  /// Of the last `rows` rows of the chunk.
  static void AddAttention(const Attention& attention, const ChunkShape& chunk, int64_t rows,
                           StepWork* work);

  Part layers_;
  Part last_;  // What comes after the last attention.
  Part head_;
  std::vector<Attention> attentions_;
};

/// Seconds that a machine with these rates needs at the least.
double BoundSeconds(const StepWork& work, const MachineRates& rates);

/// Seconds of arithmetic at the rates' peak: the second term above.
double ArithmeticSeconds(const StepWork& work, const MachineRates& rates);

}  // namespace tessera::runtime
