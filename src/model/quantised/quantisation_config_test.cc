// SPDX-License-Identifier: Apache-2.0
//
// Configs of repositories as their packers write them, and those that would change what the codes
// mean. The codes themselves: tests/e2e/test_quantised.py, against packers written with numpy.
#include "model/quantised/quantisation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::model {
namespace {

using ::testing::HasSubstr;

Result<Quantisation> Read(std::string_view text) {
  const auto value = json::Parse(text, {}, "config");
  EXPECT_TRUE(value.has_value()) << StatusOf(value).ToString();
  return ReadQuantisation(value->get_object());
}

Quantisation MustRead(std::string_view text) {
  const auto q = Read(text);
  EXPECT_TRUE(q.has_value()) << StatusOf(q).ToString();
  return q.value_or(Quantisation());
}

TEST(QuantisationConfig, ReadsGptqOfBothFormats) {
  const Quantisation first = MustRead(
      R"({"bits": 4, "group_size": 128, "damp_percent": 0.1, "desc_act": true, "sym": false,
          "true_sequential": true, "quant_method": "gptq"})");
  EXPECT_EQ(first.method, QuantisationMethod::kGptq);
  EXPECT_EQ(first.group_size, 128);
  EXPECT_FALSE(first.symmetric);
  EXPECT_TRUE(first.zeros_minus_one);
  const Quantisation second = MustRead(
      R"({"bits": 8, "group_size": -1, "quant_method": "gptq", "checkpoint_format": "gptq_v2"})");
  EXPECT_EQ(second.bits, 8);
  EXPECT_EQ(second.group_size, std::nullopt);
  EXPECT_TRUE(second.symmetric);
  EXPECT_FALSE(second.zeros_minus_one);
}

TEST(QuantisationConfig, ReadsAwqUnderOldAndNewNames) {
  EXPECT_EQ(MustRead(R"({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "GEMM"})"),
            MustRead(R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 64})"));
}

TEST(QuantisationConfig, ReadsSchemesOfCompressedTensors) {
  const Quantisation ints = MustRead(
      R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
          {"group_0": {"weights": {"num_bits": 4, "type": "int", "symmetric": false,
           "strategy": "group", "group_size": 128}, "input_activations": null}}})");
  EXPECT_EQ(ints.method, QuantisationMethod::kPackedInts);
  EXPECT_EQ(ints.group_size, 128);
  const Quantisation floats = MustRead(
      R"({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups":
          {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "block",
           "block_structure": [128, 64]}}}})");
  EXPECT_EQ(floats.method, QuantisationMethod::kFp8);
  EXPECT_EQ(floats.block_rows, 128);
  EXPECT_EQ(floats.block_columns, 64);
}

TEST(QuantisationConfig, RefusesByNameWhatItCannotRead) {
  const std::pair<std::string_view, std::string_view> refusals[] = {
      {R"({})", "quant_method"},
      {R"({"quant_method": "bitsandbytes"})", "'bitsandbytes'"},
      {R"({"quant_method": "gptq"})", "bits"},
      {R"({"quant_method": "gptq", "bits": 2})", "'2'; supported are 4 and 8"},
      {R"({"quant_method": "gptq", "bits": 3})", "'3'; supported are 4 and 8"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 0})", "group_size' is 0"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": -2})", "group_size' is -2"},
      {R"({"quant_method": "gptq", "bits": 4, "is_marlin_format": true})", "is_marlin_format"},
      {R"({"quant_method": "gptq", "bits": 4, "dynamic": {"-:x": {}}})", "dynamic"},
      {R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "bitblas"})", "'bitblas'"},
      {R"({"quant_method": "awq", "bits": 8})", "'8'; supported are 4"},
      {R"({"quant_method": "awq", "bits": 4, "version": "gemv"})", "'gemv'"},
      {R"({"quant_method": "compressed-tensors", "format": "marlin-24"})", "'marlin-24'"},
      {R"({"quant_method": "compressed-tensors", "config_groups": {}})", "config_groups"},
      {R"({"quant_method": "fp8", "weight_block_size": [128]})", "weight_block_size"},
      {R"({"quant_method": "fp8", "weight_block_size": [0, 128]})", "weight_block_size"},
      {R"({"quant_method": "fp8", "fmt": "e5m2"})", "'e5m2'"},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", "'nvfp4'"},
  };
  for (const auto& [text, message] : refusals) {
    const auto q = Read(text);
    ASSERT_FALSE(q.has_value()) << text;
    EXPECT_THAT(q.error().message(), HasSubstr(message)) << text;
  }
}

TEST(QuantisationConfig, ReadsTheFilesBesideAConfig) {
  const auto read = [](std::string_view name, std::string_view text) {
    const auto file = std::ranges::find(QuantisationFiles(), name, &QuantisationFile::name);
    return ReadQuantisationFile(json::Parse(text, {}, "file")->get_object(), *file);
  };
  const auto gptq = read("quantize_config.json", R"({"bits": 8, "group_size": 32, "sym": true})");
  ASSERT_TRUE(gptq.has_value()) << StatusOf(gptq).ToString();
  EXPECT_EQ(gptq->method, QuantisationMethod::kGptq);
  EXPECT_EQ(gptq->bits, 8);
  const auto awq = read("quant_config.json", R"({"zero_point": true, "q_group_size": 64,
                                                 "w_bit": 4, "version": "GEMM"})");
  ASSERT_TRUE(awq.has_value()) << StatusOf(awq).ToString();
  EXPECT_EQ(awq->method, QuantisationMethod::kAwq);
  EXPECT_EQ(awq->group_size, 64);
  const auto fp8 = read("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8"}})");
  ASSERT_TRUE(fp8.has_value()) << StatusOf(fp8).ToString();
  EXPECT_EQ(fp8->method, QuantisationMethod::kFp8);
  EXPECT_THAT(StatusOf(read("hf_quant_config.json", R"({"quantization": 3})")).message(),
              HasSubstr("'quantization' is missing or no object"));
  EXPECT_THAT(StatusOf(read("quantize_config.json", R"({"quant_method": "hqq"})")).message(),
              HasSubstr("'hqq'"));
}

}  // namespace
}  // namespace tessera::model
