// SPDX-License-Identifier: Apache-2.0
//
// Bundles whose hashes are right and whose contents are not: a program from outside is refused, or
// runs within its own memory (the sanitizer build sees to the second half).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "harness.h"
#include "support/scale.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class HostileBundle : public ::testing::Test {
 protected:
  HostileBundle() : folder_(dir_.path() / "bundle") {
    fs::copy(BundleOf(TinyLlama("hf")), folder_);
    program_ = ReadAll(folder_ / bundle::kProgramFile);
    const auto manifest =
        bundle::ReadManifest(ReadAll(folder_ / bundle::kManifestFile), "manifest");
    EXPECT_TRUE(manifest.has_value());
    manifest_ = manifest.value_or(bundle::Manifest());
  }

  /// Replaces a file and the record that the manifest has of it.
  void Replace(std::string_view name, std::string_view contents) {
    for (bundle::FileRecord& file : manifest_.files)
      if (file.name == name)
        file = {std::string(name), contents.size(), Sha256Hex(AsBytes(contents))};
    Write(name, contents);
    Write(bundle::kManifestFile, bundle::WriteManifest(manifest_));
  }
  /// "refused: ..." or "ran".
  std::string LoadAndRun() {
    runtime::LoadOptions options;
    options.threads = 1;
    options.kv.tokens = 64;
    options.max_rows = 8;
    const auto session = runtime::LoadSession(folder_, options);
    if (!session.has_value()) return "refused: " + session.error().ToString();
    const std::vector<int32_t> tokens = {1, 2, 3};
    const std::vector<runtime::PageId> pages = {0};
    const runtime::Chunk chunk{tokens, 0, pages, runtime::Chunk::Logits::kAll};
    const auto logits = (*session)->Step({&chunk, 1});
    return logits.has_value() ? "ran" : "refused: " + logits.error().ToString();
  }

  TempDir dir_;
  fs::path folder_;
  std::string program_;
  bundle::Manifest manifest_;

 private:
  // Without fsync: hundreds of small files.
  void Write(std::string_view name, std::string_view contents) {
    FILE* file = std::fopen((folder_ / name).c_str(), "wb");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(std::fwrite(contents.data(), 1, contents.size(), file), contents.size());
    std::fclose(file);
  }
};

TEST_F(HostileBundle, AnyDigitOfTheProgramMayBeWrong) {
  const uint64_t seed = 3;
  SCOPED_TRACE(seed);
  Random random(seed);
  std::vector<size_t> digits;
  for (size_t i = 0; i < program_.size(); ++i)
    if (program_[i] >= '0' && program_[i] <= '9') digits.push_back(i);
  int refused = 0;
  constexpr int kRounds = Scaled(400, 100);
  for (int round = 0; round < kRounds; ++round) {
    std::string text = program_;
    const size_t at = digits[random.Below(digits.size())];
    text[at] = static_cast<char>('0' + random.Below(10));
    Replace(bundle::kProgramFile, text);
    if (LoadAndRun() != "ran") ++refused;
  }
  // Most digits are sizes and indices that something else contradicts.
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

TEST_F(HostileBundle, ACutProgramIsRefused) {
  for (size_t size = 0; size < program_.size() - 1; size += 97) {
    Replace(bundle::kProgramFile, program_.substr(0, size));
    EXPECT_THAT(LoadAndRun(), HasSubstr("refused")) << size;
  }
}

TEST_F(HostileBundle, AnyByteOfTheArchivesHeadMayBeWrong) {
  const std::string archive = ReadAll(folder_ / bundle::kParametersFile);
  Random random(5);
  int refused = 0;
  for (int round = 0; round < 60; ++round) {
    std::string bytes = archive;
    bytes[random.Below(2048)] ^= static_cast<char>(1 + random.Below(255));
    Replace(bundle::kParametersFile, bytes);
    if (LoadAndRun() != "ran") ++refused;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(HostileBundle, PackedSizesMustBeThoseOfTheFormat) {
  // The program and the archive agree on the bytes, but no packed matrix has that many.
  auto program = bundle::ReadProgram(program_, "program");
  ASSERT_TRUE(program.has_value());
  for (bundle::Weight& weight : program->weights) {
    if (weight.entry != "layer0.qkv") continue;
    ASSERT_EQ(weight.dtype, tensor::DType::kF32);
    weight.dtype = tensor::DType::kF16;
  }
  Replace(bundle::kProgramFile, bundle::WriteProgram(*program));
  EXPECT_THAT(LoadAndRun(), HasSubstr("weight layer0.qkv"));
}

TEST_F(HostileBundle, AnotherTargetIsRefusedByName) {
  manifest_.target = "gfx942";
  Replace(bundle::kProgramFile, program_);
  EXPECT_THAT(LoadAndRun(), HasSubstr("is for target gfx942"));
}

}  // namespace
}  // namespace tessera::testing
