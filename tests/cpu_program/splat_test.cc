// SPDX-License-Identifier: Apache-2.0
//
// Splat parameters: a model of any size whose weights are repeated patterns compiles, shards and
// opens without the bytes, and a small one runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "bundle/bundle.h"
#include "formats/irpa/entry_metadata.h"
#include "formats/irpa/writer.h"
#include "graph/ir.h"
#include "harness.h"
#include "model/build.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
namespace irpa = formats::irpa;
using ::testing::HasSubstr;

struct Form {
  int64_t layers, hidden, ffn, heads, kv_heads, vocabulary;
};
constexpr Form kLlama405B{126, 16384, 53248, 128, 8, 128256};
constexpr Form kSmall{2, 256, 512, 8, 4, 320};

std::string ConfigOf(const Form& form) {
  return json::SerializePretty(json::Object{{"architectures", json::Array{"LlamaForCausalLM"}},
                                            {"model_type", "llama"},
                                            {"hidden_act", "silu"},
                                            {"hidden_size", form.hidden},
                                            {"intermediate_size", form.ffn},
                                            {"max_position_embeddings", 131072},
                                            {"num_attention_heads", form.heads},
                                            {"num_hidden_layers", form.layers},
                                            {"num_key_value_heads", form.kv_heads},
                                            {"rms_norm_eps", 1e-5},
                                            {"rope_theta", 500000.0},
                                            {"tie_word_embeddings", false},
                                            {"eos_token_id", 2},
                                            {"bos_token_id", 1},
                                            {"vocab_size", form.vocabulary}});
}

/// A folder with config.json, tokenizer.json and an archive of BF16 splats of `pattern`.
void WriteRepository(const fs::path& folder, const Form& form, uint16_t pattern) {
  const std::vector<std::pair<std::string, tensor::Shape>> layer = {
      {"input_layernorm", {form.hidden}},
      {"post_attention_layernorm", {form.hidden}},
      {"self_attn.q_proj", {form.hidden, form.hidden}},
      {"self_attn.k_proj", {form.hidden / form.heads * form.kv_heads, form.hidden}},
      {"self_attn.v_proj", {form.hidden / form.heads * form.kv_heads, form.hidden}},
      {"self_attn.o_proj", {form.hidden, form.hidden}},
      {"mlp.gate_proj", {form.ffn, form.hidden}},
      {"mlp.up_proj", {form.ffn, form.hidden}},
      {"mlp.down_proj", {form.hidden, form.ffn}}};
  std::vector<irpa::WriteEntry> entries;
  const auto add = [&](std::string name, const tensor::Shape& shape) {
    irpa::WriteEntry entry;
    entry.name = std::move(name);
    const auto metadata =
        irpa::MakeEntryMetadata(irpa::MetadataStyle::kPytorch, {tensor::DType::kBF16, shape});
    ASSERT_TRUE(metadata.has_value());
    entry.metadata = *metadata;
    entry.bytes = static_cast<uint64_t>(shape.elements()) * 2;
    formats::Splat splat;
    splat.pattern_bytes = 2;
    splat.pattern = {std::byte(pattern & 0xff), std::byte(pattern >> 8)};
    entry.splat = splat;
    entries.push_back(std::move(entry));
  };
  add("model.embed_tokens.weight", {form.vocabulary, form.hidden});
  for (int64_t i = 0; i < form.layers; ++i)
    for (const auto& [name, shape] : layer)
      add(fmt::format("model.layers.{}.{}.weight", i, name), shape);
  add("model.norm.weight", {form.hidden});
  add("lm_head.weight", {form.vocabulary, form.hidden});
  fs::create_directories(folder);
  auto writer = irpa::ArchiveWriter::Create(folder / "model.irpa", entries, {});
  ASSERT_TRUE(writer.has_value()) << writer.error().ToString();
  ASSERT_TRUE((*writer)->Finish().ok());
  ASSERT_TRUE(WriteFileAtomic(folder / "config.json", ConfigOf(form)).ok());
  fs::copy_file(TinyLlama("hf") / "tokenizer.json", folder / "tokenizer.json");
}

uint64_t BytesIn(const fs::path& folder) {
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder)) bytes += file.file_size();
  return bytes;
}

TEST(Splats, A405BShapedModelIsABundleOfAFewMegabytesForEightRanks) {
  const TempDir dir;
  WriteRepository(dir.path() / "repository", kLlama405B, 0x3c00);
  compiler::CompileOptions options;
  options.tensor_parallel = 8;
  const auto report = MustCompile(dir.path() / "repository", dir.path(), options);
  EXPECT_LT(BytesIn(report.bundle), 8u << 20);
  const auto opened = bundle::OpenBundle(report.bundle, bundle::Check::kEverything);
  ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
  ASSERT_EQ(opened->ranks.size(), 8u);
  EXPECT_EQ(opened->ranks[3].program.dims.heads, 16);
  EXPECT_GT(opened->manifest.plan.parameter_bytes, 800'000'000'000);
  runtime::LoadOptions load;
  load.kv.tokens = 64;
  const auto session = runtime::LoadSession(report.bundle, load);
  ASSERT_FALSE(session.has_value());
  EXPECT_THAT(session.error().ToString(), HasSubstr("are patterns (splats) that take 8"));
}

TEST(Splats, ASmallModelOfThemRuns) {
  const TempDir dir;
  WriteRepository(dir.path() / "repository", kSmall, 0x3c00);
  compiler::CompileOptions options;
  const auto alone = MustCompile(dir.path() / "repository", dir.path(), options);
  options.tensor_parallel = 2;
  const auto two = MustCompile(dir.path() / "repository", dir.path(), options);
  const std::vector<int32_t> tokens = {1, 2, 3};
  const auto session = MustLoad(alone.bundle, {.threads = 1, .kv = {.tokens = 64}});
  const auto ranks = MustLoad(two.bundle, {.threads = 1, .kv = {.tokens = 64}});
  ASSERT_TRUE(session != nullptr && ranks != nullptr);
  const Logits logits = RunAll(session.get(), tokens);
  ASSERT_EQ(logits.size(), 3u * 320);
  EXPECT_NE(logits[0], 0);
  EXPECT_EQ(RunAll(ranks.get(), tokens), logits);
}

}  // namespace
}  // namespace tessera::testing
