// SPDX-License-Identifier: Apache-2.0
//
// A step does what the program says and no more: bytes of weights and KV, multiply-accumulates and
// barriers, counted by the runtime, against the formulas of runtime/step_work.h.
#include <gtest/gtest.h>

#include "bundle/store.h"
#include "harness.h"
#include "runtime/step_work.h"
#include "synthetic_model.h"

namespace tessera::testing {
namespace {

using runtime::Chunk;
using runtime::ChunkShape;
using runtime::SessionStats;

constexpr double kTolerance = 0.02;

/// A bundle, its session with room for a few sequences, and the work of steps with them.
class Counted {
 public:
  Counted(const std::filesystem::path& bundle, int threads, size_t sequences, int64_t positions,
          kernels::KvType kv_type = kernels::KvType::kF16)
      : kv_type_(kv_type), tokens_(512, 7) {
    auto opened = bundle::OpenBundle(bundle, bundle::Check::kSizesAndSmallFiles);
    EXPECT_TRUE(opened.has_value());
    program_ = std::move(opened->program);
    const int64_t pages = positions / program_.dims.page_tokens + 1;
    runtime::LoadOptions options;
    options.threads = threads;
    options.kv.tokens = static_cast<int64_t>(sequences) * pages * program_.dims.page_tokens;
    options.kv_type = kv_type;
    session_ = MustLoad(bundle, options);
    for (size_t i = 0; i < sequences; ++i)
      sequences_.emplace_back(session_.get(),
                              static_cast<runtime::PageId>(static_cast<int64_t>(i) * pages), pages);
  }

  const bundle::Program& program() const { return program_; }

  /// One step with `rows` rows of every sequence; the last has logits. What it did.
  SessionStats Step(int64_t rows) {
    std::vector<Chunk> chunks;
    shapes_.clear();
    for (Sequence& sequence : sequences_) {
      shapes_.push_back({sequence.position(), rows, 1});
      chunks.push_back(
          sequence.Next(std::span(tokens_).first(static_cast<size_t>(rows)), Chunk::Logits::kLast));
    }
    const SessionStats before = session_->stats();
    EXPECT_TRUE(session_->Step(chunks).has_value());
    const SessionStats after = session_->stats();
    return {.steps = after.steps - before.steps,
            .barriers = after.barriers - before.barriers,
            .weight_bytes = after.weight_bytes - before.weight_bytes,
            .kv_bytes = after.kv_bytes - before.kv_bytes,
            .matmul_macs = after.matmul_macs - before.matmul_macs,
            .attention_macs = after.attention_macs - before.attention_macs};
  }
  /// What the last step had to do.
  runtime::StepWork Work() const { return runtime::ProgramWork(program_, kv_type_).Of(shapes_); }

 private:
  const kernels::KvType kv_type_;
  bundle::Program program_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<Sequence> sequences_;
  std::vector<ChunkShape> shapes_;
  std::vector<int32_t> tokens_;
};

void ExpectNear(uint64_t did, uint64_t must, const char* what) {
  EXPECT_GE(did, must) << what;
  EXPECT_LE(static_cast<double>(did), static_cast<double>(must) * (1 + kTolerance)) << what;
}

/// One step of `rows` rows a sequence.
void ExpectNoMoreThanTheFormula(Counted* counted, int64_t rows) {
  const SessionStats did = counted->Step(rows);
  const runtime::StepWork must = counted->Work();
  ExpectNear(did.weight_bytes + did.kv_bytes, must.bytes(), "bytes");
  EXPECT_EQ(did.matmul_macs, must.macs() - must.attention_macs);
  EXPECT_EQ(did.attention_macs, must.attention_macs);
}

TEST(StepWork, OfADecodeStepAtDepthIsTheFormula) {
  Counted one(BundleOf(SmolLm2()), 1, 1, 513);
  one.Step(512);
  ExpectNoMoreThanTheFormula(&one, 1);
  EXPECT_GT(one.Work().kv_bytes, 10'000'000u);  // 513 positions of 22.5 KiB.
}

TEST(StepWork, OfADecodeStepOverInt8KvIsTheFormula) {
  Counted one(BundleOf(SmolLm2()), 2, 1, 129, kernels::KvType::kInt8);
  one.Step(128);
  ExpectNoMoreThanTheFormula(&one, 1);
  const auto position =
      uint64_t{30} * 3 * 2 * (64 + 4);  // Layers, KV heads, K and V, codes, scale.
  EXPECT_EQ(one.Work().kv_bytes, 129 * position);
}

TEST(StepWork, OfADecodeStepOfManyStreamsIsTheFormula) {
  Counted many(BundleOf(SmolLm2()), 2, 8, 129);
  for (int i = 0; i < 2; ++i) many.Step(64);
  ExpectNoMoreThanTheFormula(&many, 1);
}

TEST(StepWork, OfAPromptWithinOneTileIsTheFormulaButForKv) {
  Counted prompt(BundleOf(TinyLlama("hf")), 2, 1, 63);
  const SessionStats did = prompt.Step(63);  // One more, and they would be strips.
  const runtime::StepWork must = prompt.Work();
  EXPECT_EQ(did.weight_bytes, must.weight_bytes);
  EXPECT_EQ(did.matmul_macs + did.attention_macs, must.macs());
  EXPECT_GE(did.kv_bytes, must.kv_bytes);  // Tiles of rows share reads, not the whole prompt.
}

TEST(StepWork, CountsWindowsAndPaddedVocabularies) {
  const TempDir dir;
  model::ModelConfig config = SyntheticConfig();
  config.attention.window = 5;
  config.attention.window_layers = {true, false};
  const model::ModelSource source =
      MakeSynthetic(config, AllMatrices(tensor::DType::kQ8_0), dir.path() / "model.gguf");
  compiler::CompileInput input;
  input.source = &source;
  input.name = "synthetic";
  input.tokenizer_json = "{}";
  const auto report = compiler::Compile(input, {}, bundle::Store(dir.path() / "cache"));
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  Counted windowed(report->bundle, 1, 2, 14);
  windowed.Step(11);
  ExpectNoMoreThanTheFormula(&windowed, 3);
}

TEST(StepWork, BarriersOfFewRowsAreOneAfterEachStepOfTheProgram) {
  for (const auto& model : {TinyLlama("hf"), SmolLm2()}) {
    Counted counted(BundleOf(model), 2, 1, 9);
    EXPECT_EQ(counted.Step(1).barriers, counted.program().steps.size() - 1);
    EXPECT_EQ(counted.Step(8).barriers, counted.program().steps.size() - 1);
  }
}

}  // namespace
}  // namespace tessera::testing
