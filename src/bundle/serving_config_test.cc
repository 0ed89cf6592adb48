// SPDX-License-Identifier: Apache-2.0
#include "bundle/serving_config.h"

#include <gtest/gtest.h>

#include "support/fixtures.h"

namespace tessera::bundle {
namespace {

ServingConfig Must(Result<ServingConfig> config) {
  EXPECT_TRUE(config.has_value()) << config.error().ToString();
  return config.value_or(ServingConfig{});
}

TEST(ServingConfig, RewritesTheExportersFilesByteForByte) {
  for (const char* name : {"smollm2_f16.config.json", "toy_llama.config.json",
                           "tiny2_v3.2.0.config.json", "tiny2_tp2_v3.2.0.config.json"}) {
    const std::string text =
        testing::ReadAll(testing::Shared(std::string("samples/shark/export/") + name));
    ASSERT_FALSE(text.empty());
    EXPECT_EQ(WriteServingConfig(Must(ReadServingConfig(text, name))), text);
  }
}

TEST(ServingConfig, DefaultsWhatOlderExportersLeftOut) {
  const ServingConfig config = Must(ReadServingConfig(
      testing::ReadAll(testing::Shared("samples/shark/export/tiny2_v3.2.0.config.json")), "x"));
  EXPECT_EQ(config.generation, ConfigGeneration::kSeed);
  EXPECT_EQ(config.logits_normalization, "none");
  EXPECT_FALSE(config.has_prefill_position);
  ASSERT_TRUE(config.paged_kv_cache.has_value());
  EXPECT_EQ(config.paged_kv_cache->kv_cache_dtype, "float16");
  EXPECT_EQ(config.decode_batch_sizes, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(Must(ReadServingConfig(WriteServingConfig(config), "again")), config);
  // The set of two ranks differs in its batch sizes only.
  ServingConfig ranks = Must(ReadServingConfig(
      testing::ReadAll(testing::Shared("samples/shark/export/tiny2_tp2_v3.2.0.config.json")), "y"));
  EXPECT_EQ(ranks.decode_batch_sizes, (std::vector<int64_t>{1}));
  ranks.prefill_batch_sizes = config.prefill_batch_sizes;
  ranks.decode_batch_sizes = config.decode_batch_sizes;
  EXPECT_EQ(ranks, config);
}

// A server of 3.2 refuses unknown keys at the top and has only these.
TEST(ServingConfig, TheOlderGenerationHasNoKeyThatItsServerRefuses) {
  ServingConfig config = Must(ReadServingConfig(
      testing::ReadAll(testing::Shared("samples/shark/export/toy_llama.config.json")), "x"));
  EXPECT_EQ(config.generation, ConfigGeneration::kCurrent);
  config.generation = ConfigGeneration::kSeed;
  EXPECT_EQ(
      WriteServingConfig(config),
      R"({"module_name": "module", "module_abi_version": 1, "max_seq_len": 128, )"
      R"("attn_head_dim": 32, "prefill_batch_sizes": [1, 4], "decode_batch_sizes": [1, 4, 8], )"
      R"("transformer_block_count": 3, "paged_kv_cache": {"attention_head_count_kv": 4, )"
      R"("block_seq_stride": 16, "device_block_count": 64}})");
}

TEST(ServingConfig, OneNewerKeyMakesAFileOfTheCurrentGeneration) {
  const auto generation = [](std::string tail) {
    return Must(ReadServingConfig(
                    R"({"max_seq_len": 8, "attn_head_dim": 4, "prefill_batch_sizes": [1],
                        "decode_batch_sizes": [1], "transformer_block_count": 2)" +
                        tail + "}",
                    "x"))
        .generation;
  };
  EXPECT_EQ(generation(""), ConfigGeneration::kSeed);
  EXPECT_EQ(generation(R"(, "top_k": 3)"), ConfigGeneration::kCurrent);
  EXPECT_EQ(generation(R"(, "has_prefill_position": false)"), ConfigGeneration::kCurrent);
  EXPECT_EQ(generation(R"(, "logits_normalization": "none")"), ConfigGeneration::kCurrent);
  EXPECT_EQ(generation(R"(, "paged_kv_cache": {"attention_head_count_kv": 1,
      "block_seq_stride": 16, "device_block_count": 2, "kv_cache_dtype": "float16"})"),
            ConfigGeneration::kCurrent);
}

TEST(ServingConfig, RefusesAnUnknownTopLevelKeyByName) {
  const auto config = ReadServingConfig(R"({"max_seq_len": 1, "surprise": 2})", "config.json");
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(config.error().ToString(), "config.json: unknown key \"surprise\"");
}

constexpr char kSmall[] =
    R"({"max_seq_len": 8, "attn_head_dim": 4, "prefill_batch_sizes": [1], "decode_batch_sizes": [1],
        "transformer_block_count": 2)";

TEST(ServingConfig, IgnoresUnknownKeysOfThePagedCacheAsShortfinDoes) {
  const ServingConfig config =
      Must(ReadServingConfig(std::string(kSmall) + R"(, "attn_dtype": "bfloat16", "paged_kv_cache":
        {"attention_head_count_kv": 1, "block_seq_stride": 16, "device_block_count": 2, "new": 1}})",
                             "x"));
  EXPECT_EQ(config.paged_kv_cache->kv_cache_dtype, "bfloat16");
}

TEST(ServingConfig, NamesTheFieldThatIsWrong) {
  const auto message = [](std::string tail) {
    const auto config = ReadServingConfig(std::string(kSmall) + tail, "c");
    return config.has_value() ? "accepted" : config.error().ToString();
  };
  EXPECT_EQ(message(", \"top_k\": 0}"), "c: \"top_k\" is 0, expected a value in [1, 16777216]");
  EXPECT_EQ(message(", \"logits_normalization\": \"tanh\"}"),
            "c: \"logits_normalization\" is \"tanh\", expected none, softmax or log_softmax");
  EXPECT_EQ(message(", \"paged_kv_cache\": 3}"),
            "c: paged_kv_cache is integer, expected an object");
  EXPECT_EQ(message(", \"logits_normalization\": \"LOG_Softmax\"}"), "accepted");
  const auto descending = ReadServingConfig(
      R"({"max_seq_len": 8, "attn_head_dim": 4, "prefill_batch_sizes": [4, 1],
          "decode_batch_sizes": [1], "transformer_block_count": 2})",
      "c");
  ASSERT_FALSE(descending.has_value());
  EXPECT_EQ(descending.error().ToString(), "c: \"prefill_batch_sizes\" is not ascending");
}

}  // namespace
}  // namespace tessera::bundle
