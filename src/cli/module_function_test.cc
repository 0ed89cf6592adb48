// SPDX-License-Identifier: Apache-2.0
#include "cli/module_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cli/module_input.h"

#include "base/file.h"
#include "formats/npy/npy.h"
#include "support/fixtures.h"

namespace tessera::cli {
namespace {

using tensor::DType;
using tensor::Shape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModuleInput Parse(std::string_view text) {
  auto input = ParseModuleInput(text);
  EXPECT_TRUE(input.has_value()) << text << ": " << input.error().ToString();
  return input.has_value() ? *std::move(input) : ModuleInput();
}
std::string Error(std::string_view text) {
  const auto input = ParseModuleInput(text);
  return input.has_value() ? "accepted" : input.error().ToString();
}

TEST(ModuleInputText, MeansWhatItMeansToIree) {
  EXPECT_THAT(Parse("1x4xi64=1 2 3 4").Integers(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Parse("2x2xi64=1,-2, 3,4").Integers(), ElementsAre(1, -2, 3, 4));
  EXPECT_THAT(Parse("2x2xi64=[1 2][3 4]").Integers(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Parse("4xi64=65").Integers(), ElementsAre(65, 65, 65, 65));
  EXPECT_THAT(Parse("i64=7").Integers(), ElementsAre(7));
  EXPECT_THAT(Parse("3xi64").Integers(), ElementsAre(0, 0, 0));
  const ModuleInput cache = Parse("512x368640xf16");
  EXPECT_EQ(cache.dtype, DType::kF16);
  EXPECT_EQ(cache.shape, (Shape{512, 368640}));
  EXPECT_TRUE(cache.bytes.empty()) << "zeros need no memory";
  const ModuleInput half = Parse("2xf16=1 -0.5");
  const uint16_t bits[] = {0x3c00, 0xb800};
  EXPECT_EQ(std::memcmp(half.bytes.data(), bits, sizeof(bits)), 0);
  EXPECT_EQ(ModuleInputType(DType::kI64, {1, 128}), "1x128xi64");
}

TEST(ModuleInputText, TakesFiles) {
  const testing::TempDir dir;
  const int64_t values[] = {5, 6};
  const ByteSpan raw = std::as_bytes(std::span(values));
  const std::string npy = (dir.path() / "x.npy").string();
  ASSERT_TRUE(WriteFileAtomic(npy, *formats::npy::Write(DType::kI64, {1, 2}, raw)).ok());
  const std::string bin = (dir.path() / "x.bin").string();
  ASSERT_TRUE(WriteFileAtomic(bin, AsText(raw)).ok());
  EXPECT_EQ(Parse("@" + npy).shape, (Shape{1, 2}));
  EXPECT_THAT(Parse("@" + npy).Integers(), ElementsAre(5, 6));
  EXPECT_THAT(Parse("1x2xi64=@" + npy).Integers(), ElementsAre(5, 6));
  EXPECT_THAT(Parse("2xi64=@" + bin).Integers(), ElementsAre(5, 6));
  EXPECT_THAT(Error("3xi64=@" + bin), HasSubstr("has 16 bytes, the type needs 24"));
  EXPECT_THAT(Error("2x1xi64=@" + npy), HasSubstr("is 1x2xi64, not 2x1xi64"));
  EXPECT_THAT(Error("@" + bin), HasSubstr("wrong magic"));
  EXPECT_THAT(Error("@nowhere.npy"), HasSubstr("nowhere.npy"));
}

TEST(ModuleInputText, WhatItIsNotIsSaid) {
  for (const std::string_view text :
       {"", "x", "4", "4x", "4xf8", "-1xi64", "1x1x1x1x1x1x1x1x1xi64"})
    EXPECT_NE(Error(text), "accepted") << text;
  EXPECT_THAT(Error("4xi7"), HasSubstr("no type of an array"));
  EXPECT_THAT(Error("2xi64=1 2 3"), HasSubstr("one too many"));
  EXPECT_THAT(Error("3xi64=1 2"), HasSubstr("2 values for 3 elements"));
  EXPECT_THAT(Error("2xi64=1 b"), HasSubstr("\"b\" is no number"));
  EXPECT_THAT(Error("1xi8=300"), HasSubstr("\"300\" is no number of the type"));
  EXPECT_THAT(Error("9223372036854775807x2xi64"), HasSubstr("9223372036854775807"));
  EXPECT_THAT(Error("4294967296xi64=1"), HasSubstr("at most 1 GiB"));
}

TEST(ModuleFunctions, AreThoseOfTheConfig) {
  bundle::ServingConfig config;
  config.prefill_batch_sizes = {1, 4};
  config.decode_batch_sizes = {8};
  EXPECT_THAT(FunctionNames(config), ElementsAre("prefill_bs1", "prefill_bs4", "decode_bs8"));
  EXPECT_EQ(FindFunction(config, "decode_bs8")->batch, 8);
  EXPECT_TRUE(FindFunction(config, "prefill_bs4")->is_prefill);
  EXPECT_THAT(FindFunction(config, "decode_bs4").error().message(),
              HasSubstr("it has prefill_bs1, prefill_bs4, decode_bs8"));
}

}  // namespace
}  // namespace tessera::cli
