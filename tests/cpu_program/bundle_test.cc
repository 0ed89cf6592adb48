// SPDX-License-Identifier: Apache-2.0
//
// Bundles as Compile() makes them: reuse, reasons, damage, formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "harness.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

class BundleTest : public ::testing::Test {
 protected:
  /// A fresh copy of the tiny bundle, to be damaged.
  fs::path Copy() {
    const fs::path copy = dir_.path() / "copy";
    fs::remove_all(copy);
    fs::copy(BundleOf(TinyLlama("hf")), copy);
    return copy;
  }
  static std::string LoadError(const fs::path& bundle, bool verify = false) {
    const auto session = runtime::LoadSession(bundle, {.threads = 1, .verify_parameters = verify});
    return session.has_value() ? "loaded" : session.error().ToString();
  }
  /// Changes one byte in the middle of a file, in place.
  static void Damage(const fs::path& path) {
    std::string bytes = ReadAll(path);
    ASSERT_FALSE(bytes.empty());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    ASSERT_TRUE(WriteFileAtomic(path, bytes).ok());
  }
  TempDir dir_;
};

TEST_F(BundleTest, SecondCompileReusesAndSaysSo) {
  const auto first = MustCompile(TinyLlama("hf"), dir_.path());
  EXPECT_FALSE(first.reused);
  EXPECT_THAT(first.reasons, Contains("stage export: no bundle of hf yet"));
  const auto second = MustCompile(TinyLlama("hf"), dir_.path());
  EXPECT_TRUE(second.reused);
  EXPECT_EQ(second.bundle, first.bundle);
  EXPECT_THAT(second.reasons, Contains(HasSubstr("reusing bundle")));
}

TEST_F(BundleTest, SaysWhyAStageRunsBeforeItRuns) {
  const auto source = model::OpenModel(TinyLlama("hf"));
  ASSERT_TRUE(source.has_value()) << source.error().ToString();
  compiler::CompileInput input;
  input.source = &*source;
  input.name = "hf";
  input.tokenizer_json = ReadAll(TinyLlama("hf") / "tokenizer.json");
  std::vector<std::string> events;
  const auto report = compiler::Compile(
      input, {}, bundle::Store(dir_.path()),
      [&](const compiler::Progress& progress) {
        if (events.empty() || events.back() != progress.stage) events.emplace_back(progress.stage);
      },
      [&](const std::string& reason) { events.push_back(reason); });
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_THAT(events, ::testing::ElementsAre("hashing sources", "stage export: no bundle of hf yet",
                                             "stage compile: the parameters are new",
                                             "packing parameters", "syncing parameters"));
  std::vector<std::string> stages;
  for (const auto& stage : report->stages) stages.push_back(stage.name);
  EXPECT_THAT(stages, ::testing::ElementsAre("hashing sources", "packing parameters",
                                             "syncing parameters"));
}

TEST_F(BundleTest, SaysWhichOptionChanged) {
  MustCompile(TinyLlama("hf"), dir_.path());
  compiler::CompileOptions options;
  options.max_seq_len = 256;
  options.decode_batch_sizes = {1, 2};
  const auto report = MustCompile(TinyLlama("hf"), dir_.path(), options);
  EXPECT_FALSE(report.reused);
  EXPECT_THAT(report.reasons, Contains(HasSubstr("max_seq_len changed 1024 -> 256")));
  EXPECT_THAT(report.reasons, Contains(HasSubstr("decode_batch_sizes changed 1,4,8 -> 1,2")));
  EXPECT_EQ(MustLoad(report.bundle)->shape().max_seq_len, 256);
}

/// Which of a bundle's files are the same file as another's.
std::vector<std::string> SharedFiles(const fs::path& a, const fs::path& b) {
  std::vector<std::string> shared;
  for (const auto& entry : fs::directory_iterator(a))
    if (fs::exists(b / entry.path().filename()) &&
        fs::equivalent(entry.path(), b / entry.path().filename()))
      shared.push_back(entry.path().filename().string());
  std::sort(shared.begin(), shared.end());
  return shared;
}

TEST_F(BundleTest, AChangedOptionRedoesOnlyWhatDependsOnIt) {
  const auto first = MustCompile(TinyLlama("hf"), dir_.path());
  compiler::CompileOptions options;
  options.decode_batch_sizes = {1, 2};
  const auto second = MustCompile(TinyLlama("hf"), dir_.path(), options);
  EXPECT_FALSE(second.reused);
  EXPECT_THAT(
      second.reasons,
      ::testing::ElementsAre("stage export: reusing the parameters of " + first.bundle.string(),
                             "stage compile: decode_batch_sizes changed 1,4,8 -> 1,2"));
  EXPECT_THAT(SharedFiles(first.bundle, second.bundle),
              ::testing::ElementsAre("model.irpa", "tokenizer.json"));
  fs::remove_all(first.bundle);
  EXPECT_EQ(LoadError(second.bundle, true), "loaded");

  options.quantize = "q8_0";
  const auto third = MustCompile(TinyLlama("hf"), dir_.path(), options);
  EXPECT_THAT(third.reasons,
              ::testing::ElementsAre("stage export: quantization changed source -> q8_0",
                                     "stage compile: the parameters are new"));
  EXPECT_TRUE(SharedFiles(second.bundle, third.bundle).empty());
}

TEST_F(BundleTest, StagesAreRedoneWhenAskedFor) {
  using Redo = compiler::CompileOptions::Redo;
  const auto first = MustCompile(TinyLlama("hf"), dir_.path());
  const auto inode = [&] { return fs::hard_link_count(first.bundle / "model.irpa"); };
  std::error_code error;
  fs::create_hard_link(first.bundle / "model.irpa", dir_.path() / "kept", error);
  ASSERT_FALSE(error);
  compiler::CompileOptions options;
  options.redo = Redo::kCompile;
  const auto second = MustCompile(TinyLlama("hf"), dir_.path(), options);
  EXPECT_FALSE(second.reused);
  EXPECT_EQ(second.bundle, first.bundle);
  EXPECT_THAT(second.reasons, Contains("stage compile: asked for"));
  EXPECT_EQ(inode(), 2U) << "the parameters were packed again";
  options.redo = Redo::kExport;
  const auto third = MustCompile(TinyLlama("hf"), dir_.path(), options);
  EXPECT_THAT(third.reasons, Contains("stage export: asked for"));
  EXPECT_EQ(inode(), 1U) << "the parameters were not packed again";
  EXPECT_EQ(ReadAll(dir_.path() / "kept"), ReadAll(third.bundle / "model.irpa"));
  EXPECT_EQ(LoadError(third.bundle, true), "loaded");
}

TEST_F(BundleTest, TheModelsOwnContextIsTheLongest) {
  EXPECT_EQ(*compiler::ContextLength(0, 1024), 1024);
  for (const int64_t wanted : {1, 1023, 1024})
    EXPECT_EQ(*compiler::ContextLength(wanted, 1024), wanted);
  for (const int64_t wanted : {-1, 1025})
    EXPECT_EQ(compiler::ContextLength(wanted, 1024).error().code(), Code::kInvalidArgument);
  EXPECT_THAT(compiler::ContextLength(1025, 1024).error().message(),
              HasSubstr("1025 is more than the model's 1024"));
}

TEST_F(BundleTest, ADamagedBundleIsMadeAgain) {
  const auto first = MustCompile(TinyLlama("hf"), dir_.path());
  Damage(first.bundle / "program.json");
  const auto second = MustCompile(TinyLlama("hf"), dir_.path());
  EXPECT_FALSE(second.reused);
  EXPECT_THAT(second.reasons, Contains(HasSubstr("program.json has SHA-256")));
  EXPECT_EQ(LoadError(second.bundle, true), "loaded");
}

TEST_F(BundleTest, ManifestHashesEveryFileAsItIsOnDisk) {
  const auto opened = bundle::OpenBundle(BundleOf(SmolLm2()), bundle::Check::kEverything);
  ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
  EXPECT_EQ(opened->manifest.files.size(), 7U);  // Chat template included.
  EXPECT_EQ(opened->manifest.source.format, "GGUF");
  EXPECT_EQ(opened->manifest.page.bytes, 32 * opened->manifest.plan.kv_bytes_per_token);
}

TEST_F(BundleTest, DamageIsOneLineThatNamesTheFile) {
  for (const char* name : {"program.json", "config.json", "tokenizer.json"}) {
    const fs::path copy = Copy();
    Damage(copy / name);
    EXPECT_THAT(LoadError(copy), HasSubstr(std::string(name) + " has SHA-256"));
  }
  fs::path copy = Copy();
  Damage(copy / "model.irpa");
  EXPECT_EQ(LoadError(copy), "loaded") << "parameters are hashed on request only";
  EXPECT_THAT(LoadError(copy, true), HasSubstr("model.irpa has SHA-256"));
  copy = Copy();
  fs::resize_file(copy / "model.irpa", fs::file_size(copy / "model.irpa") - 4096);
  EXPECT_THAT(LoadError(copy), HasSubstr("model.irpa has"));
  copy = Copy();
  fs::remove(copy / "model.irpa");
  EXPECT_THAT(LoadError(copy), HasSubstr("model.irpa is missing"));
  copy = Copy();
  fs::remove(copy / "manifest.json");
  EXPECT_THAT(LoadError(copy), HasSubstr("is no bundle"));
}

TEST_F(BundleTest, EntriesAreAlignedAndDescribeTheirLayout) {
  const auto opened = bundle::OpenBundle(BundleOf(SmolLm2()), bundle::Check::kSizesAndSmallFiles);
  ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
  const auto entries = opened->archive.entries();
  ASSERT_EQ(entries.size(), opened->program.weights.size() + 1);
  EXPECT_EQ(entries.back().name, "tessera.identity");
  uint64_t last = 0;
  for (const formats::ParameterEntry& entry : entries.first(entries.size() - 1)) {
    EXPECT_EQ(entry.offset % 4096, 0U) << entry.name;
    EXPECT_GT(entry.offset, last) << "in the order of the program";
    last = entry.offset;
    EXPECT_THAT(entry.note, HasSubstr("\"tessera\": {\"layout\": ")) << entry.name;
  }
}

TEST_F(BundleTest, ServingConfigIsThatOfTheModel) {
  const auto opened = bundle::OpenBundle(BundleOf(SmolLm2()), bundle::Check::kSizesAndSmallFiles);
  ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
  EXPECT_EQ(
      bundle::WriteServingConfig(opened->config),
      R"({"module_name": "module", "module_abi_version": 1, "max_seq_len": 8192, )"
      R"("attn_head_dim": 64, "prefill_batch_sizes": [1, 4], "has_prefill_position": true, )"
      R"("decode_batch_sizes": [1, 4, 8], "transformer_block_count": 30, )"
      R"("logits_normalization": "none", "top_k": null, "paged_kv_cache": )"
      R"({"attention_head_count_kv": 3, "block_seq_stride": 32, "device_block_count": 257, )"
      R"("kv_cache_dtype": "float16", "paged_kv_block_size_elements_per_device": [368640]}})");
}

TEST_F(BundleTest, QuantisedBundlesStayCloseAndDeterministic) {
  const std::vector<int32_t> tokens = {1, 5, 300, 17, 511, 0, 42, 42, 9, 10, 11, 12};
  const Logits exact = RunAll(MustLoad(BundleOf(TinyLlama("hf"))).get(), tokens);
  for (const auto& [name, tolerance] : {std::pair{"q8_0", 0.2}, std::pair{"q4_1", 1.2}}) {
    compiler::CompileOptions options;
    options.quantize = name;
    const auto report = MustCompile(TinyLlama("hf"), dir_.path(), options);
    EXPECT_FALSE(report.notes.empty());
    const auto session = MustLoad(report.bundle, {.threads = 2});
    ASSERT_NE(session, nullptr);
    const Logits logits = RunAll(session.get(), tokens, 12);
    double square = 0;
    for (size_t i = 0; i < logits.size(); ++i) square += std::pow(logits[i] - exact[i], 2);
    const double rms = std::sqrt(square / static_cast<double>(logits.size()));
    EXPECT_LE(rms, tolerance) << name;
    EXPECT_EQ(RunAll(session.get(), tokens, 1), logits) << name;
    EXPECT_EQ(RunAll(MustLoad(report.bundle, {.threads = 3, .isa = Isa{}}).get(), tokens, 5),
              logits)
        << name;
  }
}

TEST_F(BundleTest, RefusesWhatTheTargetCannotDo) {
  const auto source = model::OpenModel(TinyLlama("hf"));
  ASSERT_TRUE(source.has_value());
  compiler::CompileInput input;
  input.source = &*source;
  input.name = "tiny";
  input.tokenizer_json = "{}";
  const auto error_of = [&](const compiler::CompileOptions& options) {
    const auto report = compiler::Compile(input, options, bundle::Store(dir_.path()));
    return report.has_value() ? "compiled" : report.error().ToString();
  };
  compiler::CompileOptions options;
  options.target = "gfx942";
  EXPECT_THAT(error_of(options), HasSubstr("target \"gfx942\" is not built in"));
  options = {}, options.tensor_parallel = 9;
  EXPECT_THAT(error_of(options), HasSubstr("tp9: expected tp1 to tp8"));
  options = {}, options.quantize = "q3_z";
  EXPECT_THAT(error_of(options), HasSubstr("quantize \"q3_z\" is not known"));
  options = {}, options.page_tokens = 24;
  EXPECT_THAT(error_of(options), HasSubstr("24 tokens a page"));
  options = {}, options.decode_batch_sizes = {4, 1};
  EXPECT_THAT(error_of(options), HasSubstr("decode batch sizes [4, 1]"));
  EXPECT_FALSE(fs::exists(dir_.path() / "bundles"));
}

}  // namespace
}  // namespace tessera::testing
