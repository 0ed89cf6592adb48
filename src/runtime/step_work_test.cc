// SPDX-License-Identifier: Apache-2.0
//
// The formulas, by hand. That a session does no more than they say: tests/cpu_program/work_test.cc.
#include "runtime/step_work.h"

#include <gtest/gtest.h>

namespace tessera::runtime {
namespace {

using tensor::DType;

constexpr int64_t kHidden = 64, kHeads = 4, kKvHeads = 2, kHeadDim = 16, kFfn = 96,
                  kVocabulary = 40;

/// Layers with the same weights; q, k and v in one matrix, gate and up in one, as the compiler
/// writes them.
bundle::Program Layers(int layers, int64_t window) {
  bundle::Program program;
  program.dims = {kHidden, kVocabulary, 1, kHeads, kKvHeads, kHeadDim, 128, 32};
  const auto add = [&](DType dtype, int64_t n, int64_t k, int64_t bytes) {
    program.weights.push_back({"", bundle::WeightLayout::kPacked8, dtype, n, k, 1, bytes, {}, ""});
    return std::ssize(program.weights) - 1;
  };
  bundle::QkvStep qkv;
  qkv.q.weight = qkv.k.weight = qkv.v.weight = add(DType::kQ4_0, 128, kHidden, 1000);
  bundle::AttentionStep attention;
  attention.window = window;
  bundle::ProjectStep project;
  project.weight = add(DType::kQ8_0, kHidden, 64, 200);
  bundle::GatedStep gated;
  gated.gate = add(DType::kQ4_0, 2 * kFfn, kHidden, 30);
  bundle::HeadStep head;
  head.weight = add(DType::kQ6_K, kVocabulary, kHidden, 4);
  bundle::EmbedStep embed;
  embed.table = head.weight;  // Tied: reading one row of it is not counted.
  program.steps = {{"", embed, "", ""}};
  for (int i = 0; i < layers; ++i)
    program.steps.insert(
        program.steps.end(),
        {{"", qkv, "", ""}, {"", attention, "", ""}, {"", project, "", ""}, {"", gated, "", ""}});
  program.steps.push_back({"", head, "", ""});
  return program;
}
bundle::Program OneLayer(int64_t window) {
  return Layers(1, window);
}

TEST(ProgramWork, ReadsEachWeightOnceAndTheHeadForLogitsOnly) {
  const ProgramWork work(OneLayer(0));
  const ChunkShape without[] = {{0, 8, 0}};
  EXPECT_EQ(work.Of(without).weight_bytes, 1000u);  // K and V; the rest of the last layer is not.
  EXPECT_EQ(work.Of(without).matmul_macs.count(DType::kQ6_K), 0u);
  const ChunkShape with[] = {{0, 8, 1}, {3, 2, 0}};
  EXPECT_EQ(work.Of(with).weight_bytes, 1234u);
}

TEST(ProgramWork, CountsMultiplyAccumulatesByFormat) {
  const ChunkShape chunks[] = {{0, 2, 1}, {7, 1, 1}};
  const StepWork work = ProgramWork(OneLayer(0)).Of(chunks);
  EXPECT_EQ(work.matmul_macs.at(DType::kQ4_0), (3u * 128 + 2u * 2 * kFfn) * kHidden);
  EXPECT_EQ(work.matmul_macs.at(DType::kQ8_0), 2u * 64 * kHidden);
  EXPECT_EQ(work.matmul_macs.at(DType::kQ6_K), 2u * kVocabulary * kHidden);
  // The rows with logits, at positions 1 and 7, see 2 and 8 positions.
  EXPECT_EQ(work.attention_macs, 10u * 2 * kHeads * kHeadDim);
  EXPECT_EQ(work.macs(), (3u * 128 + 2u * 2 * kFfn) * kHidden + 2u * 64 * kHidden +
                             2u * kVocabulary * kHidden + 10u * 2 * kHeads * kHeadDim);
}

TEST(ProgramWork, AfterTheLastAttentionOnlyRowsWithLogitsCount) {
  const ProgramWork work(Layers(3, 0));
  const ChunkShape prompt[] = {{0, 4, 1}}, all[] = {{0, 4, 4}}, none[] = {{0, 4, 0}};
  // Rows at positions 0 to 3 see 10 positions, the last of them 4.
  const uint64_t attention = 2 * kHeads * kHeadDim;
  EXPECT_EQ(work.Of(all).attention_macs, 30 * attention);
  EXPECT_EQ(work.Of(prompt).attention_macs, 24 * attention);
  EXPECT_EQ(work.Of(none).attention_macs, 20 * attention);
  const uint64_t position = 2 * kKvHeads * kHeadDim * 2;
  EXPECT_EQ(work.Of(prompt).kv_bytes, 12 * position);
  EXPECT_EQ(work.Of(none).kv_bytes, 8 * position);
  EXPECT_EQ(work.Of(all).matmul_macs.at(DType::kQ8_0), 3u * 4 * 64 * kHidden);
  EXPECT_EQ(work.Of(prompt).matmul_macs.at(DType::kQ8_0), (2u * 4 + 1) * 64 * kHidden);
}

TEST(ProgramWork, Int8KeysAndValuesAreAByteEachAndTwoScalesAHead) {
  const ChunkShape chunks[] = {{9, 1, 1}};
  EXPECT_EQ(ProgramWork(OneLayer(0), kernels::KvType::kInt8).Of(chunks).kv_bytes,
            10u * 2 * kKvHeads * (kHeadDim + 4));
}

TEST(ProgramWork, ReadsKeysAndValuesOnceASequence) {
  const ChunkShape chunks[] = {{100, 4, 4}, {9, 1, 1}};
  const uint64_t position = 2 * kKvHeads * kHeadDim * 2;
  EXPECT_EQ(ProgramWork(OneLayer(0)).Of(chunks).kv_bytes, (104 + 10) * position);
  // Rows 100 to 103 with a window of 16 see positions 85 to 103.
  EXPECT_EQ(ProgramWork(OneLayer(16)).Of(chunks).kv_bytes, (19 + 10) * position);
  EXPECT_EQ(ProgramWork(OneLayer(16)).Of(chunks).attention_macs,
            (4u * 16 + 10) * 2 * kHeads * kHeadDim);
}

TEST(BoundSeconds, IsTheSlowerOfMemoryAndArithmetic) {
  StepWork work;
  work.weight_bytes = 900;
  work.kv_bytes = 100;
  work.matmul_macs = {{DType::kQ4_0, 50}, {DType::kQ8_0, 20}, {DType::kF16, 5}};
  work.attention_macs = 5;
  MachineRates rates;
  rates.read_bytes = 1000;
  rates.float_ops = 10;
  rates.int5_ops = 100;
  rates.int6_ops = 80;
  rates.int8_ops = 40;
  EXPECT_DOUBLE_EQ(ArithmeticSeconds(work, rates), 1.0 + 1.0 + 1.0 + 1.0);
  EXPECT_DOUBLE_EQ(BoundSeconds(work, rates), 4.0);
  rates.read_bytes = 100;
  EXPECT_DOUBLE_EQ(BoundSeconds(work, rates), 10.0);
}

}  // namespace
}  // namespace tessera::runtime
