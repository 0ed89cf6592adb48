// SPDX-License-Identifier: Apache-2.0
#include "hub/listing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "hub/limits.h"
#include "hub/select_files.h"

namespace tessera::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSha1(40, 'a');
const std::string kSha256(64, 'b');

std::string Small(std::string_view name) {
  return fmt::format(R"({{"rfilename": "{}", "size": 3, "blobId": "{}"}})", name, kSha1);
}
std::string Large(std::string_view name, std::string_view bytes = "7") {
  return fmt::format(
      R"({{"rfilename": "{}", "size": 134, "blobId": "{}", "lfs": {{"sha256": "{}", "size": {}, "pointerSize": 134}}}})",
      name, kSha1, kSha256, bytes);
}
std::string Answer(const std::string& files, std::string_view id = "org/repo") {
  return fmt::format(
      R"({{"id": "{}", "sha": "{}", "tags": ["x", "license:mit"], "siblings": [{}]}})", id, kSha1,
      files);
}

Listing Parsed(const std::string& files) {
  auto listing = ParseListing(Answer(files), "answer");
  EXPECT_TRUE(listing.has_value()) << listing.error().ToString();
  return listing.has_value() ? *listing : Listing();
}

std::vector<std::string> Names(const Selection& selection) {
  std::vector<std::string> names;
  for (const RepositoryFile* file : selection.files) names.push_back(file->name);
  return names;
}

TEST(Listing, LargeFilesHaveSha256AndTheirOwnSize) {
  const Listing listing = Parsed(Small("config.json") + "," + Large("model.safetensors"));
  EXPECT_EQ(listing.commit, kSha1);
  EXPECT_EQ(listing.licence, "mit");
  ASSERT_EQ(listing.files.size(), 2u);
  EXPECT_EQ(listing.files[0].etag(), kSha1);
  EXPECT_EQ(listing.files[1].etag(), kSha256);
  EXPECT_EQ(listing.files[1].bytes, 7u);
  EXPECT_EQ(*ParseListing(WriteListing(listing), "copy"), listing);
}

TEST(Listing, NamesThatReachOutsideAreLeftOut) {
  size_t refused = 0;
  const auto listing =
      ParseListing(Answer(Small("../x") + "," + Small("a.json") + "," + Small("/x")), "", &refused);
  ASSERT_TRUE(listing.has_value());
  EXPECT_EQ(listing->files.size(), 1u);
  EXPECT_EQ(refused, 2u);
}

TEST(Listing, WhatIsMissingOrOddIsNamed) {
  const auto error = [](const std::string& text) {
    const auto listing = ParseListing(text, "answer");
    return listing.has_value() ? std::string("accepted") : listing.error().ToString();
  };
  EXPECT_THAT(error("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(error("{}"), HasSubstr("id"));
  EXPECT_THAT(error(Answer("", "../repo")), HasSubstr("../repo"));
  EXPECT_THAT(error(Answer("", "https://huggingface.co/org/repo")),
              HasSubstr("no repository name"));
  EXPECT_THAT(error(Answer(R"({"rfilename": "a"})")), HasSubstr("blobId is not 40"));
  EXPECT_THAT(error(Answer(Large("a", "-1"))), HasSubstr("size is -1"));
  EXPECT_THAT(error(Answer(Large("a", "1e30"))), HasSubstr("size"));
  EXPECT_THAT(error(Answer(Small("a") + "," + Small("a"))), HasSubstr("names \"a\" twice"));
  EXPECT_THAT(error(R"({"id": "o/r", "sha": "XYZ", "siblings": []})"), HasSubstr("sha is not 40"));
  EXPECT_THAT(error(std::string(5000, '[')), HasSubstr("nested deeper"));
}

TEST(Listing, SizesHaveALimit) {
  EXPECT_TRUE(ParseListing(Answer(Large("a", std::to_string(kMaxFileBytes))), "").has_value());
  EXPECT_FALSE(ParseListing(Answer(Large("a", std::to_string(kMaxFileBytes + 1))), "").has_value());
}

const std::string kTexts = Small("config.json") + "," + Small("tokenizer.json") + ",";

TEST(SelectFiles, TakesWhatAModelNeedsAndNothingElse) {
  const Listing listing = Parsed(kTexts + Small("README.md") + "," + Large("pytorch_model.bin") +
                                 "," + Large("original/model.safetensors") + "," +
                                 Large("model.safetensors") + "," + Large("model.gguf"));
  const auto selection = SelectFiles(listing, "", "");
  ASSERT_TRUE(selection.has_value()) << selection.error().ToString();
  EXPECT_THAT(Names(*selection), ElementsAre("config.json", "tokenizer.json", "model.safetensors"));
  EXPECT_EQ(selection->model, "");
}

TEST(SelectFiles, ShardsComeFromTheIndex) {
  const Listing listing =
      Parsed(kTexts + Small("model.safetensors.index.json") + "," + Large("b.safetensors") + "," +
             Large("a.safetensors") + "," + Large("other.safetensors"));
  const auto selection = SelectFiles(listing, "", "");
  ASSERT_TRUE(selection.has_value());
  EXPECT_EQ(selection->index, "model.safetensors.index.json");
  const auto shards = SelectShards(
      listing,
      R"({"weight_map": {"x": "a.safetensors", "y": "b.safetensors", "z": "a.safetensors"}})", "i");
  ASSERT_TRUE(shards.has_value());
  EXPECT_EQ(shards->size(), 2u);
  for (const char* bad :
       {"[]", "{}", R"({"weight_map": {"x": 1}})", R"({"weight_map": {"x": "c.safetensors"}})",
        R"({"weight_map": {"x": "config.json"}})", R"({"weight_map": {"x": "../a.safetensors"}})"})
    EXPECT_FALSE(SelectShards(listing, bad, "i").has_value()) << bad;
}

TEST(SelectFiles, QuantisationsAreChosenByWholeWords) {
  const Listing listing = Parsed(
      Large("M-Q4_K_M.gguf") + "," + Large("M-Q4_K_S.gguf") + "," + Large("M.Q8_0.gguf") + "," +
      Large("BF16/M-BF16-00001-of-00002.gguf") + "," + Large("BF16/M-BF16-00002-of-00002.gguf"));
  EXPECT_EQ(SelectFiles(listing, "q4_k_m", "")->model, "M-Q4_K_M.gguf");
  EXPECT_EQ(SelectFiles(listing, "Q8_0", "")->model, "M.Q8_0.gguf");
  const auto parts = SelectFiles(listing, "BF16", "");
  ASSERT_TRUE(parts.has_value()) << parts.error().ToString();
  EXPECT_THAT(Names(*parts),
              ElementsAre("BF16/M-BF16-00001-of-00002.gguf", "BF16/M-BF16-00002-of-00002.gguf"));
  EXPECT_THAT(SelectFiles(listing, "Q4_K", "").error().message(),
              HasSubstr("none of them \"Q4_K\""));
  EXPECT_THAT(SelectFiles(listing, "", "").error().message(),
              HasSubstr("NAME one of BF16, Q4_K_M, Q4_K_S, Q8_0"));
  EXPECT_EQ(SelectFiles(listing, "", "M.Q8_0.gguf")->model, "M.Q8_0.gguf");
  EXPECT_FALSE(SelectFiles(listing, "", "absent.gguf").has_value());
}

TEST(SelectFiles, PartsOfAGgufAreTakenTogetherOrRefused) {
  const Listing whole = Parsed(Large("M-00001-of-00002.gguf") + "," +
                               Large("M-00002-of-00002.gguf") + "," + Large("N.gguf"));
  const auto named = SelectFiles(whole, "", "M-00002-of-00002.gguf");
  ASSERT_TRUE(named.has_value()) << named.error().ToString();
  EXPECT_EQ(named->files.size(), 2u);
  EXPECT_EQ(named->model, "M-00001-of-00002.gguf");
  const Listing cut = Parsed(Large("M-00001-of-00003.gguf") + "," + Large("M-00003-of-00003.gguf"));
  EXPECT_THAT(SelectFiles(cut, "", "").error().message(), HasSubstr("lacks part 2 of the 3 of M"));
  const Listing tail = Parsed(Large("M-00002-of-00002.gguf"));
  EXPECT_THAT(SelectFiles(tail, "", "").error().message(), HasSubstr("lacks part 1 of the 2 of M"));
}

TEST(SelectFiles, PicklesAreRefusedByName) {
  const Listing listing = Parsed(kTexts + Large("pytorch_model-00001-of-00002.bin"));
  EXPECT_THAT(SelectFiles(listing, "", "").error().message(),
              HasSubstr("(pytorch_model-00001-of-00002.bin), which are programs"));
}

TEST(SelectFiles, NamesThatDifferInCaseOnlyAreRefused) {
  const Listing listing =
      Parsed(kTexts + Small("additional_chat_templates/a.jinja") + "," +
             Small("additional_chat_templates/A.jinja") + "," + Large("model.safetensors"));
  EXPECT_THAT(SelectFiles(listing, "", "").error().message(), HasSubstr("letter case"));
}

}  // namespace
}  // namespace tessera::hub
