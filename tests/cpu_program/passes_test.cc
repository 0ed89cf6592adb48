// SPDX-License-Identifier: Apache-2.0
//
// An optional pass makes a program faster or more readable, never different: without it, every
// logit keeps its bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "harness.h"

namespace tessera::testing {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> OptionalPasses() {
  std::vector<std::string> names;
  for (const compiler::Pass& pass : compiler::CpuPipeline())
    if (pass.optional) names.emplace_back(pass.name);
  return names;
}

std::vector<int32_t> Tokens() {
  return ReadReferences(Shared("fixtures/tiny_llama/logits.jsonl")).back().ids;
}

void ExpectSameLogits(const compiler::CompileOptions& options, const Logits& expected) {
  const TempDir cache;
  const compiler::CompileReport report = MustCompile(TinyLlama("hf"), cache.path(), options);
  for (const std::string& name : options.disabled_passes)
    EXPECT_THAT(report.passes,
                Not(Contains(Field(&compiler::CompileReport::PassTime::name, name))));
  EXPECT_EQ(report.passes.size() + options.disabled_passes.size(), compiler::CpuPipeline().size());
  EXPECT_EQ(RunAll(MustLoad(report.bundle, {.threads = 2}).get(), Tokens()), expected)
      << ::testing::PrintToString(options.disabled_passes);
}

TEST(Passes, EachOptionalOneAndAllTogetherKeepEveryBit) {
  const std::vector<std::string> names = OptionalPasses();
  ASSERT_THAT(names, Contains("join-projections"));
  for (const char* quantize : {"none", "q8_0"}) {
    compiler::CompileOptions options;
    options.quantize = quantize;
    const TempDir cache;
    const compiler::CompileReport report = MustCompile(TinyLlama("hf"), cache.path(), options);
    const Logits expected = RunAll(MustLoad(report.bundle, {.threads = 2}).get(), Tokens());
    ASSERT_FALSE(expected.empty());
    for (const std::string& name : names) {
      options.disabled_passes = {name};
      ExpectSameLogits(options, expected);
    }
    options.disabled_passes = names;
    ExpectSameLogits(options, expected);
  }
}

TEST(Passes, WithoutJoiningThereAreMoreWeights) {
  const auto program = [](const compiler::CompileOptions& options) {
    const TempDir cache;
    const auto report = MustCompile(TinyLlama("hf"), cache.path(), options);
    return bundle::OpenBundle(report.bundle, bundle::Check::kSizesAndSmallFiles)->program;
  };
  compiler::CompileOptions apart;
  apart.disabled_passes = {"join-projections"};
  const bundle::Program joined = program({});
  // q/k/v and gate/up: five matrices instead of two in each layer.
  EXPECT_EQ(program(apart).weights.size(),
            joined.weights.size() + 3 * static_cast<size_t>(joined.dims.layers));
}

TEST(Passes, OnlyOptionalOnesCanBeSwitchedOff) {
  const std::vector<std::string> names = {"lower-steps"};
  EXPECT_EQ(compiler::CheckDisabledPasses(names).code(), Code::kInvalidArgument);
  EXPECT_THAT(compiler::CheckDisabledPasses(names).ToString(),
              HasSubstr("\"lower-steps\" is no pass that can be switched off: join-projections"));
  EXPECT_TRUE(compiler::CheckDisabledPasses(OptionalPasses()).ok());
}

}  // namespace
}  // namespace tessera::testing
