// SPDX-License-Identifier: Apache-2.0
//
// What gates.py counts. Three modes:
//   gate_driver kernels          every weight format's matmul at M = 1, 8, 32 (N = 512, K = 2048),
//                                activation quantisation included
//   gate_driver step BUNDLE      decode steps of one and of eight sequences, one thread
//   gate_driver work BUNDLE      natively, two threads: JSON of barriers and bytes a step
// The first two run under callgrind with --instr-atstart=no: only what stands between Start and
// Dump is counted, on the x86-64-v3 kernels, the newest that valgrind's CPU knows.
#include <fmt/format.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "bundle/bundle.h"
#include "kernels/catalog.h"
#include "kernels/pack.h"
#include "runtime/load.h"
#include "runtime/step_work.h"

namespace tessera {
namespace {

using kernels::kBlock;
using tensor::DType;

constexpr Isa kX86V3 = {.avx2 = true};
constexpr int64_t kOutputs = 512, kInputs = 2048;

/// Runs `work` counted, and dumps the counts under a name that gates.py reads back.
template <class F>
void Count(const std::string& name, const F& work) {
  CALLGRIND_START_INSTRUMENTATION;
  work();
  CALLGRIND_DUMP_STATS_AT(name.c_str());
  CALLGRIND_STOP_INSTRUMENTATION;  // Before the dump it would forget the counts.
}

struct Aligned {
  explicit Aligned(int64_t bytes) : storage(static_cast<size_t>(bytes) + 64) {
    const auto address = reinterpret_cast<uintptr_t>(storage.data());
    data = storage.data() + (64 - address % 64) % 64;
  }
  std::vector<std::byte> storage;
  std::byte* data;
};

/// Small exponents in every 16 and 32 bits: no NaN, wherever a format keeps its scales.
void FillWeights(std::byte* data, int64_t bytes) {
  Random random(1);
  for (int64_t at = 0; at + 8 <= bytes; at += 8) {
    const uint64_t word = random() & 0x3fff3fff3fff3fffu;
    std::memcpy(data + at, &word, 8);
  }
}

void CountMatmul(DType dtype, int64_t rows) {
  const int64_t bytes = kernels::PackedBytes(dtype, kOutputs, kInputs);
  const Aligned weights(bytes), prepared(std::max(kernels::QuantisedRowsBytes(rows, kInputs),
                                                  kernels::BFloat16RowsBytes(rows, kInputs)));
  FillWeights(weights.data, bytes);
  std::vector<float> x(static_cast<size_t>(rows * kInputs)),
      out(static_cast<size_t>(rows * kOutputs));
  Random random(2);
  for (float& value : x) value = static_cast<float>(random.Normal());
  kernels::MatmulArgs args{.weights = weights.data, .n = kOutputs, .k = kInputs};
  args.q = kernels::MakeQuantisedRows(prepared.data, rows, kInputs);
  args.b = kernels::MakeBFloat16Rows(prepared.data, rows);
  args.x = x.data();
  args.ldx = kInputs;
  args.rows = rows;
  args.out = out.data();
  args.ld_out = kOutputs;
  args.group_end = kernels::GroupCount(kOutputs);
  const auto run = std::get<kernels::MatmulFn>(kernels::FindMatmul(dtype, rows, kX86V3)->fn);
  const kernels::RowKernels row = kernels::SelectRowKernels(kX86V3);
  Count(fmt::format("{} {}", tensor::Name(dtype), rows), [&] {
    if (kernels::UsesQuantisedRows(dtype))
      row.quantise({.x = x.data(), .ldx = kInputs, .k = kInputs, .row_end = rows, .out = args.q});
    if (kernels::UsesBFloat16Rows(dtype))
      row.round({.x = x.data(), .ldx = kInputs, .k = kInputs, .row_end = rows, .out = args.b});
    run(args);
  });
}

void CountKernels() {
  for (const DType dtype :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ4_K,
        DType::kQ5_K, DType::kQ6_K, DType::kF32, DType::kF16, DType::kBF16})
    for (const int64_t rows : {1, 8, 32}) CountMatmul(dtype, rows);
}

/// Sequences of equal length on pages of their own.
class Streams {
 public:
  Streams(runtime::Session* session, int64_t count, int64_t positions)
      : session_(session), tokens_(static_cast<size_t>(positions), 7) {
    const int64_t page_tokens = session->shape().page_tokens;
    const int64_t pages = (positions + page_tokens - 1) / page_tokens;
    for (int64_t i = 0; i < count; ++i) {
      pages_.emplace_back(static_cast<size_t>(pages));
      std::iota(pages_.back().begin(), pages_.back().end(),
                static_cast<runtime::PageId>(i * pages));
    }
  }

  /// `rows` more positions of every sequence, logits for the last.
  Status Step(int64_t rows) {
    chunks_.clear();
    shapes_.clear();
    for (const auto& pages : pages_) {
      chunks_.push_back({std::span<const int32_t>(tokens_).first(static_cast<size_t>(rows)), at_,
                         pages, runtime::Chunk::Logits::kLast});
      shapes_.push_back({at_, rows, 1});
    }
    at_ += rows;
    return StatusOf(session_->Step(chunks_));
  }
  const std::vector<runtime::ChunkShape>& shapes() const { return shapes_; }

 private:
  runtime::Session* session_;
  std::vector<int32_t> tokens_;
  std::vector<std::vector<runtime::PageId>> pages_;
  std::vector<runtime::Chunk> chunks_;
  std::vector<runtime::ChunkShape> shapes_;
  int64_t at_ = 0;
};

Status CountSteps(const std::string& bundle) {
  for (const int64_t streams : {1, 8}) {
    runtime::LoadOptions options;
    options.threads = 1;
    options.pin_threads = false;
    options.kv.tokens = streams * 32;
    options.max_rows = 8;
    options.isa = kX86V3;
    TESSERA_ASSIGN_OR_RETURN(const auto session, runtime::LoadSession(bundle, options));
    // Few positions: valgrind takes a second for every row, counted or not.
    Streams sequences(session.get(), streams, 8);
    TESSERA_RETURN_IF_ERROR(sequences.Step(1));
    Status status;
    Count(fmt::format("decode {}", streams), [&] { status = sequences.Step(1); });
    TESSERA_RETURN_IF_ERROR(status);
  }
  return {};
}

struct WorkCase {
  std::string_view name;
  int threads;
  int64_t streams;
  int64_t depth;  // Positions before the step, which is of one row a stream, or of
  int64_t rows;
};

Result<json::Object> Work(const std::string& bundle, const runtime::ProgramWork& formula,
                          const WorkCase& test) {
  runtime::LoadOptions options;
  options.threads = test.threads;
  options.kv.tokens = test.streams * (test.depth + test.rows + 64);
  TESSERA_ASSIGN_OR_RETURN(const auto session, runtime::LoadSession(bundle, options));
  Streams sequences(session.get(), test.streams, test.depth + test.rows);
  const int64_t most = session->shape().max_rows / test.streams;
  for (int64_t at = 0; at < test.depth; at += most)
    TESSERA_RETURN_IF_ERROR(sequences.Step(std::min(most, test.depth - at)));
  const runtime::SessionStats before = session->stats();
  TESSERA_RETURN_IF_ERROR(sequences.Step(test.rows));
  const runtime::SessionStats after = session->stats();
  return json::Object{
      {"name", test.name},
      {"layers", session->shape().layers},
      {"barriers", after.barriers - before.barriers},
      {"bytes", after.weight_bytes + after.kv_bytes - before.weight_bytes - before.kv_bytes},
      {"formula_bytes", formula.Of(sequences.shapes()).bytes()}};
}

Status PrintWork(const std::string& path) {
  TESSERA_ASSIGN_OR_RETURN(const bundle::Bundle bundle,
                           bundle::OpenBundle(path, bundle::Check::kSizesAndSmallFiles));
  const runtime::ProgramWork formula(bundle.program);
  constexpr std::array kCases = {
      WorkCase{"decode, 1 thread, depth 512", 1, 1, 512, 1},
      WorkCase{"decode, 2 threads, depth 512", 2, 1, 512, 1},
      WorkCase{"decode of 8, 2 threads, depth 256", 2, 8, 256, 1},
      WorkCase{"prompt of 128, 2 threads", 2, 1, 0, 128},
  };
  json::Array rows;
  for (const WorkCase& test : kCases) {
    TESSERA_ASSIGN_OR_RETURN(json::Object row, Work(path, formula, test));
    rows.push_back(std::move(row));
  }
  fmt::print("{}", json::SerializePretty(rows));
  return {};
}

int Main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "kernels" && argc == 2) {
    CountKernels();
    return 0;
  }
  if ((mode == "step" || mode == "work") && argc == 3) {
    const Status status = mode == "step" ? CountSteps(argv[2]) : PrintWork(argv[2]);
    if (status.ok()) return 0;
    fmt::print(stderr, "gate_driver: {}\n", status.ToString());
    return 1;
  }
  fmt::print(stderr, "usage: gate_driver kernels | step BUNDLE | work BUNDLE\n");
  return 2;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::Main(argc, argv);
}
