// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <set>

#include "cli/bounded_lines.h"
#include "cli/bundle_options.h"
#include "cli/byte_size.h"
#include "cli/flagfile.h"
#include "cli/foreign_flags.h"
#include "cli/model_argument.h"
#include "cli/model_parts.h"
#include "cli/terminal.h"
#include "cli/validators.h"

#include "base/file.h"
#include "model/limits.h"
#include "support/fixtures.h"
#include "text/limits.h"
#include "text/template_limits.h"

namespace tessera::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Flagfile, KeepsFlagsAndDropsCommentsAndBlankLines) {
  const auto flags = ParseFlagfile(
      "# one\n--module=a b.vmfb\n\n  // two\n\t--input=1x4xi64=1 2 3 4 \r\n--flag", "f");
  ASSERT_TRUE(flags.has_value()) << StatusOf(flags).ToString();
  EXPECT_THAT(*flags, ElementsAre("--module=a b.vmfb", "--input=1x4xi64=1 2 3 4", "--flag"));
}

TEST(Flagfile, NamesTheLineThatIsNoFlag) {
  EXPECT_THAT(ParseFlagfile("--a=1\npositional\n", "f.txt").error().message(),
              HasSubstr("f.txt:2: \"positional\""));
  EXPECT_FALSE(ParseFlagfile("--flagfile=other", "f").has_value());
  EXPECT_FALSE(ParseFlagfile("--", "f").has_value());
}

TEST(Flagfile, StandsWhereItWasNamed) {
  const testing::TempDir dir;
  const std::string path = (dir.path() / "flags").string();
  ASSERT_TRUE(WriteFileAtomic(path, "--b=2\n").ok());
  EXPECT_THAT(*ExpandFlagfiles({"run", "--a=1", "--flagfile=" + path, "--c=3"}),
              ElementsAre("run", "--a=1", "--b=2", "--c=3"));
  EXPECT_THAT(*ExpandFlagfiles({"--flagfile", path}), ElementsAre("--b=2"));
  EXPECT_EQ(ExpandFlagfiles({"--flagfile"}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ExpandFlagfiles({"--flagfile=/no/such"}).error().code(), Code::kNotFound);
}

TEST(ByteSize, TakesBothKindsOfUnits) {
  EXPECT_EQ(*ParseByteSize("1"), 1u);
  EXPECT_EQ(*ParseByteSize("4096"), 4096u);
  EXPECT_EQ(*ParseByteSize("512k"), 512'000u);
  EXPECT_EQ(*ParseByteSize("512M"), 512'000'000u);
  EXPECT_EQ(*ParseByteSize("1.5GB"), 1'500'000'000u);
  EXPECT_EQ(*ParseByteSize("2Gi"), uint64_t{2} << 30);
  EXPECT_EQ(*ParseByteSize("2gib"), uint64_t{2} << 30);
  EXPECT_EQ(*ParseByteSize("1T"), 1'000'000'000'000u);
  for (const char* bad : {"", "0", "-1", "1X", "G", "1GG", "1 G", "nan", "inf", "1e30", "9999999T"})
    EXPECT_EQ(StatusOf(ParseByteSize(bad)).code(), Code::kInvalidArgument) << bad;
}

/// What a validator says of a value; "" = taken.
std::string Says(const CLI::Validator& validator, std::string value) {
  return validator(value);
}

TEST(Validators, WholeNumbersAreTakenUpToTheirBounds) {
  const CLI::Validator small = WholeNumber(2, 5);
  for (const char* good : {"2", "5"}) EXPECT_EQ(Says(small, good), "");
  for (const char* bad : {"1", "6", "", "x", "2.0", "1e0", " 2", "99999999999999999999"})
    EXPECT_EQ(Says(small, bad), fmt::format("\"{}\": expected a whole number from 2 to 5", bad));
  EXPECT_EQ(Says(WholeNumber(0), "9223372036854775807"), "");
  for (const char* bad : {"-1", "9223372036854775808", "1e20"})
    EXPECT_EQ(Says(WholeNumber(0), bad),
              fmt::format("\"{}\": expected a whole number of at least 0", bad));
}

TEST(Validators, NumbersAreFiniteAndInRange) {
  for (const char* good : {"0", "1", "0.5", "1e-3"}) EXPECT_EQ(Says(Number(0, 1), good), "");
  for (const char* bad : {"nan", "inf", "-0.1", "1.0001", "1e999", "", "0.5x"})
    EXPECT_EQ(Says(Number(0, 1), bad), fmt::format("\"{}\": expected a number from 0 to 1", bad));
}

TEST(Validators, ASeedIsAnyUnsignedNumberOrMinusOneForADrawnOne) {
  for (const char* good : {"-1", "0", "1", "18446744073709551614", "18446744073709551615"})
    EXPECT_EQ(Says(Seed(), good), "") << good;
  for (const char* bad : {"-2", "18446744073709551616", "", "x", "1.5", " 1", "0x10"})
    EXPECT_NE(Says(Seed(), bad), "") << bad;
  EXPECT_EQ(ParseSeed("18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(ParseSeed("-1"), std::nullopt);
}

TEST(Validators, PlainTextIsNeitherEmptyNorControlNorBroken) {
  EXPECT_EQ(Says(PlainText(), "gr\u00fc\u00dfe"), "");
  for (const char* bad : {"", "a\nb", "a\x7f", "\xFF"}) EXPECT_NE(Says(PlainText(), bad), "");
}

/// What a stream gives line by line: text, or "(N)" for one of N bytes that is too long.
std::vector<std::string> Lines(std::string text, uint64_t max_bytes) {
  std::FILE* stream = ::fmemopen(text.data(), text.size(), "r");
  BoundedLines lines(stream, max_bytes);
  std::vector<std::string> out;
  while (const auto line = lines.Next())
    out.push_back(line->too_long ? "(" + std::to_string(line->bytes) + ")"
                                 : std::string(line->text));
  std::fclose(stream);
  return out;
}

TEST(BoundedLines, SkipsOnlyTheLineThatIsTooLong) {
  EXPECT_THAT(Lines("abc\nabcd\nabcde\nab\n", 4), ElementsAre("abc", "abcd", "(5)", "ab"));
  EXPECT_THAT(Lines("a\r\n\nlast", 4), ElementsAre("a", "", "last"));
  EXPECT_THAT(Lines("x\n" + std::string(100'000, 'y'), 4), ElementsAre("x", "(100000)"));
}

FlagUse UseOfTestVerb(const std::string& name) {
  if (name == "-p" || name == "--tp") return FlagUse::kTakesValue;
  return name == "--raw" ? FlagUse::kSwitch : FlagUse::kUnknown;
}

TEST(ForeignFlags, AreFoundHoweverTheyAreSpelt) {
  const auto find = [](const std::vector<std::string>& arguments) {
    return FindForeignFlag(arguments, UseOfTestVerb).value_or("");
  };
  EXPECT_THAT(find({"serve", "m.gguf", "--gpu-memory-utilization", "0.9"}),
              HasSubstr("--gpu-memory-utilization: there is no GPU memory"));
  EXPECT_THAT(find({"serve", "--dtype=auto"}), HasSubstr("--dtype: weights run in"));
  EXPECT_THAT(find({"run", "--raw", "-ngl", "99"}), HasSubstr("-ngl: all layers run on the CPU"));
}

TEST(ForeignFlags, LeaveValuesKnownFlagsAndUnknownOnesAlone) {
  const auto find = [](const std::vector<std::string>& arguments) {
    return FindForeignFlag(arguments, UseOfTestVerb).has_value();
  };
  EXPECT_FALSE(find({"run", "-p", "--dtype"}));
  EXPECT_FALSE(find({"run", "--tp", "2", "--raw"}));
  EXPECT_FALSE(find({"run", "--no-such-flag", "-"}));
  EXPECT_FALSE(find({"run", "--", "--dtype"}));
  EXPECT_TRUE(find({"run", "-p=x", "--dtype"}));
}

class BundleOptions : public ::testing::Test {
 protected:
  Status Check(const std::set<std::string, std::less<>>& given) {
    return CheckAgainstBundle(manifest_, options_,
                              [&](std::string_view flag) { return given.contains(flag); });
  }
  void SetUp() override {
    manifest_.model = "tiny";
    manifest_.target = "cpu";
    manifest_.quantization = "q8_0";
    manifest_.options = {{"max_seq_len", "64"},
                         {"page_tokens", "32"},
                         {"device_block_count", "0"},
                         {"prefill_batch_sizes", "1,4"},
                         {"decode_batch_sizes", "1,4,8"}};
  }
  bundle::Manifest manifest_;
  compiler::CompileOptions options_;
};

TEST_F(BundleOptions, DefaultsThatNobodyGaveDoNotCount) {
  EXPECT_TRUE(Check({}).ok());
}

TEST_F(BundleOptions, AnEqualValueIsAllowedAndAnotherIsNamedWithBoth) {
  options_.max_seq_len = 64;
  options_.quantize = "q8_0";
  options_.target = "x86-64-v3";
  EXPECT_TRUE(Check({"--max-seq-len", "--quantize", "--compile-target", "--bs-prefill"}).ok());
  options_.max_seq_len = 16;
  EXPECT_EQ(Check({"--max-seq-len"}).code(), Code::kFailedPrecondition);
  EXPECT_THAT(Check({"--max-seq-len"}).message(),
              HasSubstr("--max-seq-len 16 cannot change a bundle that is made with 64"));
  options_.max_seq_len = 0;  // "The model's own": the bundle's.
  EXPECT_TRUE(Check({"--max-seq-len"}).ok());
  options_.quantize = "none";
  EXPECT_THAT(Check({"--quantize"}).message(), HasSubstr("--quantize none cannot change"));
  options_.decode_batch_sizes = {2};
  EXPECT_THAT(Check({"--bs-decode"}).message(), HasSubstr("made with 1,4,8"));
}

TEST(ModelParts, AModelIsNamedInOneWay) {
  const auto check = [](const ModelParts& parts, bool has_model,
                        const std::set<std::string, std::less<>>& given) {
    return CheckParts(parts, has_model,
                      [&](std::string_view flag) { return given.contains(flag); });
  };
  ModelParts parts{.tokenizer_json = "t.json",
                   .tokenizer_config_json = {},
                   .model_config = "c.json",
                   .program = "p.json",
                   .vmfb = {},
                   .parameters = {"x.irpa"}};
  EXPECT_TRUE(parts.any());
  EXPECT_FALSE(ModelParts().any());
  EXPECT_TRUE(check(parts, false, {"--threads"}).ok());
  for (const auto& [has_model, flag] :
       {std::pair{true, "MODEL"}, {true, "--bundle"}, {false, "--cache-dir"}, {false, "--tp"}}) {
    const Status status = check(parts, has_model, {flag});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("named either by MODEL"));
    EXPECT_THAT(status.message(), HasSubstr("--tokenizer_json, --model_config"));
    EXPECT_TRUE(status.message().ends_with(std::string("stand beside ") + flag))
        << status.message();
  }
  parts.vmfb = "m.vmfb";
  EXPECT_EQ(check(parts, false, {}).code(), Code::kUnimplemented);
  parts = {.tokenizer_json = {},
           .tokenizer_config_json = {},
           .model_config = {},
           .program = {},
           .vmfb = {},
           .parameters = {"x.irpa"}};
  EXPECT_THAT(check(parts, false, {}).message(),
              HasSubstr("missing: --tokenizer_json, --model_config, --program"));
}

TEST(ModelParts, TextsLieBesideTheTokenizer) {
  ModelParts parts;
  parts.tokenizer_json = "a/llama.json";
  EXPECT_EQ(DocumentsOfParts(parts).tokenizer_config, "a/llama_config.json");
  EXPECT_EQ(DocumentsOfParts(parts).chat_template, "a/chat_template.jinja");
  parts.tokenizer_config_json = "b/other.json";
  EXPECT_EQ(DocumentsOfParts(parts).tokenizer_config, "b/other.json");
}

TEST(ModelArgument, SaysWhatAModelMayBeWhenNothingIsThere) {
  const testing::TempDir dir;
  const auto resolve = [&](const std::string& model) {
    HubOptions hub;
    hub.hf_cache_dir = dir.path();
    hub.offline = true;
    return ResolveModel(model, hub, dir.path());
  };
  const auto absent = resolve("folder/of/a/model");
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code(), Code::kNotFound);
  EXPECT_THAT(absent.error().message(), HasSubstr("model is not there: expected a folder"));
  const auto named = resolve("org/name");
  ASSERT_FALSE(named.has_value());
  EXPECT_THAT(named.error().message(), HasSubstr("org/name@main is not complete in the cache"));
  EXPECT_EQ(resolve(dir.path().string())->kind, ModelKind::kSource);
  EXPECT_EQ(resolve("file:" + dir.path().string())->path, dir.path().string());
  EXPECT_FALSE(RequireBundle(dir.path().string()).ok());
  ASSERT_TRUE(WriteFileAtomic(dir.path() / "manifest.json", R"({"name": "an app"})").ok());
  EXPECT_EQ(resolve(dir.path().string())->kind, ModelKind::kSource);
  EXPECT_THAT(RequireBundle(dir.path().string()).message(),
              HasSubstr("its manifest.json is not one of Tessera's"));
  ASSERT_TRUE(WriteFileAtomic(dir.path() / "manifest.json",
                              R"({"format_version": 2, "tessera_version": "0.1", "mo)")
                  .ok());  // Damaged, but ours.
  EXPECT_EQ(resolve(dir.path().string())->kind, ModelKind::kBundle);
  EXPECT_TRUE(RequireBundle(dir.path().string()).ok());
}

// What a repository may hold is what textkit takes; the layers do not see each other.
static_assert(model::kMaxTemplateFileBytes == text::kMaxTemplateBytes);
static_assert(model::kMaxTokenizerBytes == text::kMaxTokenizerJsonBytes);

TEST(Terminal, SizesAndDurationsAreReadable) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(1000), "1.0 kB");
  EXPECT_EQ(HumanBytes(98'362'432), "98.4 MB");
  EXPECT_EQ(HumanBytes(999'999), "1.0 MB");
  EXPECT_EQ(HumanBytes(4'357'000'000), "4.4 GB");
  EXPECT_EQ(HumanDuration(0.0123), "12 ms");
  EXPECT_EQ(HumanDuration(12.34), "12.3 s");
  EXPECT_EQ(HumanDuration(200), "3 min 20 s");
  EXPECT_EQ(HumanDuration(7260), "2 h 1 min");
}

}  // namespace
}  // namespace tessera::cli
