// SPDX-License-Identifier: Apache-2.0
#include "bundle/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bundle/limits.h"
#include "bundle/program_verify.h"
#include "bundle/sample_program_for_test.h"

namespace tessera::bundle {
namespace {

using ::testing::HasSubstr;

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& text) {
  const auto program = ReadProgram(text, "p");
  if (!program.has_value()) return program.error().ToString();
  const Status status = VerifyProgram(*program);
  return status.ok() ? "accepted" : status.ToString();
}

std::string ErrorAfter(void (*change)(Program*)) {
  Program program = SampleProgram();
  change(&program);
  return ErrorOf(WriteProgram(program));
}

template <class Op>
Op& OpAt(Program* program, size_t step) {
  return std::get<Op>(program->steps[step].op);
}

TEST(Program, RoundTripsExactly) {
  const Program program = SampleProgram();
  ASSERT_TRUE(VerifyProgram(program).ok()) << VerifyProgram(program).ToString();
  const std::string text = WriteProgram(program);
  const auto again = ReadProgram(text, "p");
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ(*again, program);
  EXPECT_EQ(WriteProgram(*again), text);
}

TEST(Program, KeepsEveryBitOfRealNumbers) {
  Program program = SampleProgram();
  program.ropes[0].inverse_frequency[3] = 0x1.fffffffffffffp-3;
  program.ropes[0].attention_factor = 0x1.0000000000001p0;
  const auto again = ReadProgram(WriteProgram(program), "p");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->ropes, program.ropes);
}

TEST(Program, RefusesAnotherVersionOrTarget) {
  const std::string text = WriteProgram(SampleProgram());
  EXPECT_THAT(ErrorOf(Replaced(text, "\"version\": 1", "\"version\": 2")),
              HasSubstr("program version 2, this program reads 1"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"cpu\"", "\"gfx942\"")), HasSubstr("target \"gfx942\""));
}

TEST(Program, NamesUnknownWordsAndFields) {
  const std::string text = WriteProgram(SampleProgram());
  EXPECT_THAT(ErrorOf(Replaced(text, "\"p8\"", "\"p9\"")), HasSubstr("weights[0].layout"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"Q8_0\"", "\"Q9_9\"")), HasSubstr("Q9_9"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"embed\"", "\"embody\"")), HasSubstr("step \"embody\""));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"hidden\"", "\"hidded\"")), HasSubstr("hidded"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"scale\": \"1\"", "\"scale\": \"one\"")),
              HasSubstr("decimal number"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"scale\": \"1\"", "\"scale\": \"inf\"")),
              HasSubstr("decimal number"));
}

TEST(Program, DimensionsHaveLimits) {
  const auto with_context = [](int64_t context) {
    return ErrorOf(Replaced(WriteProgram(SampleProgram()), "\"max_seq_len\": 128",
                            "\"max_seq_len\": " + std::to_string(context)));
  };
  EXPECT_EQ(with_context(kMaxContext - 1), "accepted");
  EXPECT_EQ(with_context(kMaxContext), "accepted");
  EXPECT_THAT(with_context(kMaxContext + 1), HasSubstr("dims.max_seq_len"));
  EXPECT_THAT(with_context(0), HasSubstr("dims.max_seq_len"));
}

TEST(Program, TextHasItsLimit) {
  std::string text = WriteProgram(SampleProgram());
  for (const uint64_t size : {kMaxDocumentBytes - 1, kMaxDocumentBytes, kMaxDocumentBytes + 1}) {
    text.resize(size, ' ');
    EXPECT_EQ(StatusOf(ReadProgram(text, "p")).code(),
              size <= kMaxDocumentBytes ? Code::kOk : Code::kResourceExhausted)
        << size;
  }
}

TEST(Program, EveryNumberHasItsLimit) {
  const std::string text = WriteProgram(SampleProgram());
  struct Case {
    const char* member;
    int64_t value;
    int64_t max;
  };
  // The first member of that name and value: of dims, weights[0] or buffers[0].
  for (const Case& c :
       {Case{"hidden", 64, kMaxDimension}, Case{"vocab_size", 40, kMaxDimension},
        Case{"layers", 2, int64_t{kMaxLayers}}, Case{"heads", 4, kMaxHeads},
        Case{"kv_heads", 2, kMaxHeads}, Case{"head_dim", 16, kMaxHeadDim},
        Case{"page_tokens", 32, kMaxPageTokens}, Case{"rotary_dim", 16, kMaxHeadDim},
        Case{"n", 40, kMaxDimension}, Case{"k", 64, kMaxDimension},
        Case{"segments", 1, int64_t{kMaxSegments}}, Case{"bytes", 2720, kMaxBytes},
        Case{"rows", 40, kMaxDimension}, Case{"columns", 64, kMaxDimension}}) {
    const auto with = [&](int64_t value) {
      const std::string name = "\"" + std::string(c.member) + "\": ";
      return ReadProgram(
          Replaced(text, name + std::to_string(c.value), name + std::to_string(value)), "p");
    };
    EXPECT_TRUE(with(c.max - 1).has_value()) << c.member;
    EXPECT_TRUE(with(c.max).has_value()) << c.member;
    EXPECT_THAT(StatusOf(with(c.max + 1)).ToString(), HasSubstr(c.member));
    EXPECT_EQ(StatusOf(with(c.max + 1)).code(), Code::kInvalidArgument) << c.member;
  }
}

template <class T>
void ExpectLimit(std::vector<T> Program::*list, uint64_t max) {
  for (const uint64_t size : {max - 1, max, max + 1}) {
    Program program = SampleProgram();
    (program.*list).resize(size, T((program.*list)[0]));
    EXPECT_EQ(StatusOf(ReadProgram(WriteProgram(program), "p")).code(),
              size <= max ? Code::kOk : Code::kResourceExhausted)
        << size;
  }
}

TEST(Program, EveryListHasItsLimit) {
  ExpectLimit(&Program::ropes, kMaxRopes);
  ExpectLimit(&Program::weights, kMaxWeights);
  ExpectLimit(&Program::buffers, kMaxBuffers);
  ExpectLimit(&Program::steps, kMaxSteps);
  for (const uint64_t size : {kMaxWeightParts - 1, kMaxWeightParts, kMaxWeightParts + 1}) {
    Program program = SampleProgram();
    program.weights[0].parts.resize(size, WeightPart(program.weights[0].parts[0]));
    EXPECT_EQ(StatusOf(ReadProgram(WriteProgram(program), "p")).code(),
              size <= kMaxWeightParts ? Code::kOk : Code::kResourceExhausted)
        << size;
  }
}

TEST(VerifyProgram, ChecksDims) {
  EXPECT_THAT(ErrorAfter([](Program* p) { p->dims.kv_heads = 3; }),
              HasSubstr("not a multiple of 3 KV heads"));
  EXPECT_THAT(ErrorAfter([](Program* p) { p->dims.head_dim = 20; }), HasSubstr("head_dim 20"));
  EXPECT_THAT(ErrorAfter([](Program* p) { p->dims.page_tokens = 24; }),
              HasSubstr("page_tokens 24"));
}

TEST(VerifyProgram, ChecksEveryIndex) {
  EXPECT_THAT(ErrorAfter([](Program* p) { OpAt<EmbedStep>(p, 0).table = 99; }),
              HasSubstr("weight 99 of"));
  EXPECT_THAT(ErrorAfter([](Program* p) { OpAt<EmbedStep>(p, 0).out = 4; }),
              HasSubstr("buffer 4 of 4"));
  EXPECT_THAT(ErrorAfter([](Program* p) { OpAt<QkvStep>(p, 1).q.weight = 99; }),
              HasSubstr("weight 99"));
  EXPECT_THAT(ErrorAfter([](Program* p) { OpAt<QkvStep>(p, 1).rope = 1; }),
              HasSubstr("rope 1 of 1"));
  EXPECT_THAT(ErrorAfter([](Program* p) { OpAt<GatedStep>(p, 4).out = 77; }),
              HasSubstr("buffer 77"));
  EXPECT_THAT(ErrorAfter([](Program* p) { OpAt<ProjectStep>(p, 3).bias = 99; }),
              HasSubstr("weight 99"));
  EXPECT_THAT(ErrorAfter([](Program* p) { OpAt<QkvStep>(p, 1).layer = 1; }),
              HasSubstr("not of layer 0"));
}

TEST(VerifyProgram, ChecksShapes) {
  EXPECT_THAT(ErrorAfter([](Program* p) { p->weights[0].n = 41; }), HasSubstr("expected [40,64]"));
  EXPECT_THAT(ErrorAfter([](Program* p) {
                OpAt<QkvStep>(p, 1).v.row = 96;
                OpAt<QkvStep>(p, 1).v.stride = 24;
              }),
              HasSubstr("v heads at row 96 by 24"));
  EXPECT_THAT(ErrorAfter([](Program* p) { p->buffers[1].columns = 32; }),
              HasSubstr("buffer q has 32 columns"));
  EXPECT_THAT(ErrorAfter([](Program* p) { p->ropes[0].inverse_frequency.pop_back(); }),
              HasSubstr("7 frequencies"));
}

TEST(VerifyProgram, ChecksSegmentsAndKinds) {
  EXPECT_THAT(ErrorAfter([](Program* p) { p->weights[6].segments = 4; }), HasSubstr("segments"));
  EXPECT_THAT(ErrorAfter([](Program* p) { p->buffers[3].kind = BufferKind::kQuantised; }),
              HasSubstr("buffer ffn has the wrong kind"));
  EXPECT_EQ(ErrorAfter([](Program* p) { p->buffers[2].kind = BufferKind::kFloat; }), "accepted");
  EXPECT_THAT(ErrorAfter([](Program* p) { p->weights[1].dtype = tensor::DType::kF16; }),
              HasSubstr("no F32 vector"));
  EXPECT_THAT(ErrorAfter([](Program* p) { p->weights[2].layout = WeightLayout::kRows; }),
              HasSubstr("not packed"));
}

TEST(VerifyProgram, ChecksTheOrderOfStepsAndTheFlowOfData) {
  EXPECT_THAT(ErrorAfter([](Program* p) { p->steps.pop_back(); }),
              HasSubstr("11 steps, expected 12"));
  EXPECT_THAT(ErrorAfter([](Program* p) { std::swap(p->steps[1], p->steps[2]); }),
              HasSubstr("steps[1] is attention, expected qkv"));
  EXPECT_THAT(ErrorAfter([](Program* p) {
                p->buffers.push_back(p->buffers[0]);
                OpAt<GatedStep>(p, 4).in = 4;
              }),
              HasSubstr("not chained"));
}

TEST(VerifyArchive, WantsEveryEntryWithItsBytes) {
  const Program program = SampleProgram();
  formats::ParameterIndex archive;
  formats::SourceFile file;
  file.path = "model.irpa";
  archive.AddFile(std::move(file));
  for (const Weight& weight : program.weights) {
    formats::ParameterEntry entry;
    entry.name = weight.entry;
    entry.offset = 4096;
    entry.bytes = static_cast<uint64_t>(weight.bytes) + (weight.entry == "layer1.down" ? 1 : 0);
    ASSERT_TRUE(archive.Add(entry).ok());
  }
  EXPECT_THAT(VerifyArchive(program, archive).ToString(), HasSubstr("entry layer1.down has"));
  EXPECT_THAT(VerifyArchive(program, formats::ParameterIndex()).ToString(),
              HasSubstr("entry token_embd is missing"));
}

}  // namespace
}  // namespace tessera::bundle
