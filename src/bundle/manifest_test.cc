// SPDX-License-Identifier: Apache-2.0
#include "bundle/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "bundle/limits.h"
#include "support/fixtures.h"

namespace tessera::bundle {
namespace {

using ::testing::HasSubstr;

Manifest Sample() {
  Manifest manifest;
  manifest.tessera_version = "0.1";
  manifest.model = "tiny";
  manifest.key = "0123456789abcdef";
  manifest.target = "cpu";
  manifest.isa = "x86-64-v3";
  manifest.quantization = "source";
  manifest.options = {{"max_seq_len", "64"}};
  manifest.source = {
      "org/tiny", "abc", "GGUF", "apache-2.0", {{"model.gguf", 3, Sha256Hex(AsBytes("abc"))}}};
  manifest.page = {"[layer]", "F16", 32, 1024};
  manifest.plan = {100, 32, 1000};
  manifest.files = {{"a.json", 2, Sha256Hex(AsBytes("{}"))},
                    {"model.irpa", 4, Sha256Hex(AsBytes("data"))}};
  return manifest;
}

std::string ErrorOf(const std::string& text) {
  const auto manifest = ReadManifest(text, "m");
  return manifest.has_value() ? "accepted" : manifest.error().ToString();
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, RoundTrips) {
  const auto again = ReadManifest(WriteManifest(Sample()), "m");
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ(*again, Sample());
}

TEST(Manifest, ParityRoundTripsInEveryForm) {
  Manifest manifest = Sample();
  Parity parity;
  parity.reason = "--no-certificate";
  parity.tokenizer_sha256 = Sha256Hex(AsBytes("{}"));
  manifest.parity = parity;
  EXPECT_EQ(ReadManifest(WriteManifest(manifest), "m").value(), manifest);
  manifest.parity->kind = Parity::Kind::kMeasured;
  manifest.parity->tokens = 512;
  manifest.parity->program_nll = 3.0000000000000004;
  EXPECT_EQ(ReadManifest(WriteManifest(manifest), "m").value(), manifest);
  manifest.parity->reason.clear();
  manifest.parity->comparison = {2.9, 0.01, 0.95, 7, 0.125};
  const std::string text = WriteManifest(manifest);
  EXPECT_EQ(ReadManifest(text, "m").value(), manifest);
  EXPECT_THAT(ErrorOf(Replaced(text, "\"measured\"", "\"guessed\"")),
              HasSubstr("\"parity.kind\" is \"guessed\", expected exact, measured or absent"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"worst_layer\": 7", "\"worst_layer\": -1")),
              HasSubstr("parity.comparison.worst_layer"));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"mean_kl\"", "\"mean_kk\"")), HasSubstr("mean_kk"));
}

TEST(Manifest, RefusesAnotherFormatVersionNamingBoth) {
  const std::string text =
      Replaced(WriteManifest(Sample()), "\"format_version\": 2", "\"format_version\": 99");
  EXPECT_THAT(ErrorOf(text), HasSubstr("bundle format version 99, this program reads 2"));
}

TEST(Manifest, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../a.json", "/etc/passwd", "", "..", "b/c", "manifest.json"}) {
    Manifest manifest = Sample();
    manifest.files[0].name = name;
    EXPECT_THAT(ErrorOf(WriteManifest(manifest)), HasSubstr("expected a plain file name")) << name;
  }
}

TEST(Manifest, RefusesDuplicateNamesAndBadHashes) {
  Manifest manifest = Sample();
  manifest.files[1].name = "a.json";
  EXPECT_THAT(ErrorOf(WriteManifest(manifest)), HasSubstr("names a.json twice"));
  manifest = Sample();
  manifest.files[1].sha256 = "ABC";
  EXPECT_THAT(ErrorOf(WriteManifest(manifest)), HasSubstr("files[1].sha256"));
}

TEST(Manifest, RefusesUnknownKeysAndMissingFields) {
  const std::string text = WriteManifest(Sample());
  EXPECT_THAT(ErrorOf(Replaced(text, "\"isa\"", "\"isb\"")), HasSubstr("unknown key \"isb\""));
  EXPECT_THAT(ErrorOf(Replaced(text, "\"tokens\": 32", "\"tokens\": 0")),
              HasSubstr("page_layout.tokens"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("\"format_version\" is missing"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("expected an object"));
}

TEST(Manifest, HasALimitOfBytes) {
  const testing::TempDir dir;
  std::string text = WriteManifest(Sample());
  for (const uint64_t size : {kMaxDocumentBytes - 1, kMaxDocumentBytes, kMaxDocumentBytes + 1}) {
    text.resize(size, ' ');
    const Code expected = size <= kMaxDocumentBytes ? Code::kOk : Code::kResourceExhausted;
    EXPECT_EQ(StatusOf(ReadManifest(text, "m")).code(), expected) << size;
    ASSERT_TRUE(WriteFileAtomic(dir.path() / kManifestFile, text).ok());
    EXPECT_EQ(StatusOf(LoadManifest(dir.path())).code(), expected) << size;
  }
}

TEST(Manifest, HoldsItsLimits) {
  for (const uint64_t size : {kMaxManifestFiles - 1, kMaxManifestFiles, kMaxManifestFiles + 1}) {
    Manifest manifest = Sample();
    for (uint64_t i = manifest.files.size(); i < size; ++i)
      manifest.files.push_back({"f" + std::to_string(i), 1, Sha256Hex(AsBytes("x"))});
    EXPECT_EQ(StatusOf(ReadManifest(WriteManifest(manifest), "m")).code(),
              size <= kMaxManifestFiles ? Code::kOk : Code::kResourceExhausted)
        << size;
  }
  for (const int64_t tokens : {kMaxPageTokens - 1, kMaxPageTokens, kMaxPageTokens + 1}) {
    Manifest manifest = Sample();
    manifest.page.tokens = tokens;
    EXPECT_EQ(StatusOf(ReadManifest(WriteManifest(manifest), "m")).code(),
              tokens <= kMaxPageTokens ? Code::kOk : Code::kInvalidArgument)
        << tokens;
  }
  for (const int64_t bytes : {kMaxBytes - 1, kMaxBytes, kMaxBytes + 1}) {
    Manifest manifest = Sample();
    manifest.plan.parameter_bytes = bytes;
    EXPECT_EQ(StatusOf(ReadManifest(WriteManifest(manifest), "m")).code(),
              bytes <= kMaxBytes ? Code::kOk : Code::kInvalidArgument)
        << bytes;
  }
}

class VerifyFilesTest : public ::testing::Test {
 protected:
  VerifyFilesTest() {
    Write("a.json", "{}");
    Write("model.irpa", "data");
  }
  void Write(const char* name, std::string_view text) {
    ASSERT_TRUE(WriteFileAtomic(dir_.path() / name, text).ok());
  }
  std::string Verify(Check check) { return VerifyFiles(dir_.path(), Sample(), check).ToString(); }
  testing::TempDir dir_;
};

TEST_F(VerifyFilesTest, AcceptsWhatTheManifestSays) {
  EXPECT_TRUE(VerifyFiles(dir_.path(), Sample(), Check::kEverything).ok());
}

TEST_F(VerifyFilesTest, NamesTheFileAndWhatDiffers) {
  Write("a.json", "[]");
  EXPECT_THAT(Verify(Check::kSizesAndSmallFiles), HasSubstr("a.json has SHA-256"));
  Write("a.json", "{} ");
  EXPECT_THAT(Verify(Check::kSizesAndSmallFiles),
              HasSubstr("a.json has 3 bytes, its manifest says 2"));
  std::filesystem::remove(dir_.path() / "a.json");
  EXPECT_THAT(Verify(Check::kSizesAndSmallFiles), HasSubstr("a.json is missing"));
}

TEST_F(VerifyFilesTest, ReadsParametersOnlyWhenAsked) {
  Write("model.irpa", "dama");
  EXPECT_TRUE(VerifyFiles(dir_.path(), Sample(), Check::kSizesAndSmallFiles).ok());
  EXPECT_THAT(Verify(Check::kEverything), HasSubstr("model.irpa has SHA-256"));
}

}  // namespace
}  // namespace tessera::bundle
