// SPDX-License-Identifier: Apache-2.0
#include "formats/imatrix/reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/gguf/writer.h"
#include "formats/limits.h"

namespace tessera::formats::imatrix {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OldFile {
 public:
  explicit OldFile(int32_t count) { Number(count); }
  OldFile& Number(int32_t value) { return Raw(std::as_bytes(std::span(&value, 1))); }
  OldFile& Text(std::string_view text) {
    return Number(static_cast<int32_t>(text.size())).Raw(AsBytes(text));
  }
  OldFile& Matrix(std::string_view name, int32_t calls, const std::vector<float>& sums) {
    return Text(name)
        .Number(calls)
        .Number(static_cast<int32_t>(sums.size()))
        .Raw(std::as_bytes(std::span(sums)));
  }
  ByteSpan bytes() const { return AsBytes(text_); }

 private:
  OldFile& Raw(ByteSpan bytes) {
    text_.append(AsText(bytes));
    return *this;
  }
  std::string text_;
};

std::string ErrorOf(ByteSpan bytes) {
  const auto all = Parse(bytes, "f.dat");
  return all.has_value() ? "accepted" : all.error().ToString();
}
std::string ErrorOf(const OldFile& file) {
  return ErrorOf(file.bytes());
}

struct Tensor {
  std::string name;
  std::vector<float> values;
};

std::string Gguf(const std::vector<Tensor>& tensors) {
  std::vector<gguf::WriteTensor> write;
  for (const Tensor& tensor : tensors)
    write.push_back({tensor.name,
                     {tensor::DType::kF32, tensor::Shape{std::ssize(tensor.values)},
                      std::as_bytes(std::span(tensor.values))}});
  return gguf::Make({}, write).value();
}

TEST(Imatrix, ReadsTheOlderForm) {
  OldFile file(3);
  file.Matrix("blk.0.attn_q.weight", 2, {2, 4, 6}).Matrix("a", 0, {1, 2}).Matrix("b", 5, {0, 0});
  const auto check = [](const OldFile& whole) {
    const auto all = Parse(whole.bytes(), "f");
    ASSERT_TRUE(all.has_value()) << all.error().ToString();
    EXPECT_EQ(all->size(), 2U) << "a matrix of zeros says nothing";
    EXPECT_THAT(all->at("blk.0.attn_q.weight"), ElementsAre(1, 2, 3));
    EXPECT_THAT(all->at("a"), ElementsAre(1, 2)) << "without calls the sums stay";
  };
  check(file);
  check(file.Number(7));
  check(file.Text("wiki.txt"));
  EXPECT_THAT(ErrorOf(file.Number(1)), HasSubstr("4 bytes follow the end"));
}

TEST(Imatrix, ReadsTheGgufForm) {
  const std::string file = Gguf({{"q.in_sum2", {2, 4, 6}},
                                 {"q.counts", {2}},
                                 {"experts.in_sum2", {1, 2, 3, 4}},
                                 {"experts.counts", {1, 1}},
                                 {"never.in_sum2", {0, 0}},
                                 {"never.counts", {0}}});
  const auto all = Parse(AsBytes(file), "f");
  ASSERT_TRUE(all.has_value()) << all.error().ToString();
  EXPECT_EQ(all->size(), 2U);
  EXPECT_THAT(all->at("q"), ElementsAre(1, 2, 3));
  EXPECT_THAT(all->at("experts"), ElementsAre(1, 2, 3, 4));
}

// What is left must have a sum that can be divided by.
TEST(Imatrix, LeavesOutAMatrixWhoseMeansVanish) {
  const float least = std::numeric_limits<float>::denorm_min();
  const auto all = Parse(OldFile(2).Matrix("tiny", 4, {least, 0}).Matrix("a", 1, {1}).bytes(), "f");
  ASSERT_TRUE(all.has_value()) << all.error().ToString();
  EXPECT_EQ(all->count("tiny"), 0U);
  EXPECT_EQ(all->count("a"), 1U);
}

TEST(Imatrix, EveryCutOfAFileIsRefusedOrWhole) {
  const OldFile file =
      OldFile(2).Matrix("first", 1, {1, 2}).Matrix("second", 1, {3}).Number(4).Text("set");
  int accepted = 0;
  for (size_t size = 0; size < file.bytes().size(); ++size) {
    const std::string error = ErrorOf(file.bytes().first(size));
    if (error == "accepted") {
      ++accepted;
    } else {
      EXPECT_THAT(error, HasSubstr("f.dat"));
      EXPECT_THAT(error, HasSubstr("offset "));
    }
  }
  EXPECT_EQ(accepted, 2) << "after the matrices, and after the last chunk";
}

TEST(Imatrix, RefusesWhatTheFormForbids) {
  EXPECT_THAT(ErrorOf(OldFile(0)), HasSubstr("the count of matrices is 0, expected 1 to"));
  EXPECT_THAT(ErrorOf(OldFile(-1)), HasSubstr("the count of matrices is -1"));
  EXPECT_THAT(ErrorOf(OldFile(1).Text("a").Number(1).Number(0)), HasSubstr("inputs is 0"));
  EXPECT_THAT(ErrorOf(OldFile(1).Text("a").Number(1).Number(INT32_MAX)),
              HasSubstr("a matrix's sums"));
  EXPECT_THAT(ErrorOf(OldFile(2).Matrix("a", 1, {1}).Matrix("a", 1, {1})),
              HasSubstr("matrix a occurs twice"));
  for (const float bad :
       {-1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    EXPECT_THAT(ErrorOf(OldFile(1).Matrix("a", 1, {1, bad})),
                HasSubstr(fmt::format("matrix a: input 1 is {}", bad)));
}

TEST(Imatrix, LimitsTheCountOfMatricesAndTheLengthOfNames) {
  constexpr auto kMost = static_cast<int32_t>(kMaxTensors);
  EXPECT_THAT(ErrorOf(OldFile(kMost)), HasSubstr("a matrix's name")) << "the file ends there";
  EXPECT_THAT(ErrorOf(OldFile(kMost + 1)), HasSubstr("the count of matrices is"));
  const std::string longest(kMaxTensorNameBytes, 'n');
  EXPECT_EQ(ErrorOf(OldFile(1).Matrix(longest, 1, {1})), "accepted");
  EXPECT_THAT(ErrorOf(OldFile(1).Matrix(longest + "n", 1, {1})), HasSubstr("a matrix's name is"));
}

TEST(Imatrix, RefusesAGgufThatIsNone) {
  EXPECT_THAT(ErrorOf(AsBytes(Gguf({{"token_embd.weight", {1}}}))),
              HasSubstr("no importance matrix"));
  EXPECT_THAT(ErrorOf(AsBytes(Gguf({{"q.in_sum2", {1}}}))), HasSubstr("has no tensor q.counts"));
  EXPECT_THAT(ErrorOf(AsBytes(Gguf({{"q.in_sum2", {-1}}, {"q.counts", {1}}}))),
              HasSubstr("matrix q: input 0 is -1"));
}

}  // namespace
}  // namespace tessera::formats::imatrix
