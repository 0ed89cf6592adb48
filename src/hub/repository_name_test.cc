// SPDX-License-Identifier: Apache-2.0
#include "hub/repository_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "hub/limits.h"

namespace tessera::hub {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHub = "https://mirror.example";

TEST(RepositoryName, HubNamesHaveRevisionAndQuantisation) {
  const auto name = ParseRepositoryName("org/Repo-1.5_x@feature/a:Q4_K_M", kHub);
  ASSERT_TRUE(name.has_value()) << name.error().ToString();
  EXPECT_EQ(name->place, Place::kHub);
  EXPECT_EQ(name->repository, "org/Repo-1.5_x");
  EXPECT_EQ(name->revision, "feature/a");
  EXPECT_EQ(name->quantization, "Q4_K_M");
  EXPECT_EQ(ParseRepositoryName("hf://org/repo", kHub)->repository, "org/repo");
}

TEST(RepositoryName, PagesOfTheHubAndOfAMirrorAreRepositories) {
  for (const std::string hub :
       {"https://huggingface.co", "https://hf.co", "https://mirror.example"}) {
    EXPECT_EQ(ParseRepositoryName(hub + "/org/repo", kHub)->repository, "org/repo");
    EXPECT_EQ(ParseRepositoryName(hub + "/org/repo/", kHub)->revision, "");
    EXPECT_EQ(ParseRepositoryName(hub + "/org/repo/tree/v1?x=y", kHub)->revision, "v1");
    const auto file =
        ParseRepositoryName(hub + "/org/repo/resolve/main/a/b.gguf?download=true", kHub);
    ASSERT_TRUE(file.has_value()) << file.error().ToString();
    EXPECT_EQ(file->file, "a/b.gguf");
    EXPECT_EQ(file->revision, "main");
    EXPECT_FALSE(ParseRepositoryName(hub + "/org/repo/resolve/main/config.json", kHub).has_value());
    EXPECT_FALSE(ParseRepositoryName(hub + "/org/repo/discussions", kHub).has_value());
  }
}

TEST(RepositoryName, AddressesBucketsAndPathsAreTold) {
  EXPECT_EQ(ParseRepositoryName("https://host/x.gguf?sig=1", kHub)->place, Place::kUrl);
  const auto bucket = ParseRepositoryName("s3://my-bucket/models/tiny/:Q8_0", kHub);
  ASSERT_TRUE(bucket.has_value()) << bucket.error().ToString();
  EXPECT_EQ(bucket->bucket, "my-bucket");
  EXPECT_EQ(bucket->quantization, "Q8_0");
  EXPECT_EQ(ParseRepositoryName("s3://my-bucket", kHub)->prefix, "");
  EXPECT_EQ(ParseRepositoryName("file:///a/b", kHub)->path, "/a/b");
  EXPECT_EQ(ParseRepositoryName("file:a/b", kHub)->path, "a/b");
}

TEST(RepositoryName, WhatIsNoNameIsRefused) {
  for (const char* text : {"org",
                           "org/",
                           "/repo",
                           "org/repo/more",
                           "../repo",
                           "org/..",
                           "org/.hidden",
                           "org/re--po",
                           "org/repo@",
                           "org/repo:",
                           "org/repo@a b",
                           "org/repo@../x",
                           "org/repo@x:y:z",
                           "o rg/repo",
                           "org/repo\n",
                           "https://host/",
                           "https://host/x.bin",
                           "https://user:pw@host/x.gguf",
                           "s3://",
                           "s3://b",
                           "s3://bucket/../x",
                           "file:",
                           "file://host/x",
                           "hf://org"}) {
    const auto name = ParseRepositoryName(text, kHub);
    EXPECT_FALSE(name.has_value()) << text;
    EXPECT_EQ(name.error().code(), Code::kInvalidArgument) << text;
  }
  EXPECT_FALSE(ParseRepositoryName(std::string("org/re\0po", 9), kHub).has_value());
}

TEST(RepositoryName, PartsHaveALimit) {
  const std::string longest(kMaxNamePartBytes, 'a');
  EXPECT_TRUE(ParseRepositoryName("o/" + longest, kHub).has_value());
  EXPECT_FALSE(ParseRepositoryName("o/" + longest + "a", kHub).has_value());
  EXPECT_TRUE(CheckRevision(std::string(kMaxRevisionBytes / 2, 'a')).ok());
  EXPECT_FALSE(CheckRevision(std::string(kMaxRevisionBytes + 1, 'a')).ok());
}

TEST(RepositoryName, OnlyWhatCanBeNoPathLooksLikeAName) {
  EXPECT_TRUE(IsNameShaped("org/repo"));
  EXPECT_TRUE(IsNameShaped("org/repo@v1:Q4_0"));
  EXPECT_TRUE(IsNameShaped("https://host/x.gguf"));
  EXPECT_FALSE(IsNameShaped("folder/x.gguf"));
  EXPECT_FALSE(IsNameShaped("model"));
  EXPECT_FALSE(IsNameShaped("./a/b"));
  EXPECT_FALSE(IsNameShaped("a/b/c"));
}

TEST(FileName, MustStayInItsFolder) {
  EXPECT_TRUE(CheckFileName("a/b.safetensors").ok());
  EXPECT_TRUE(CheckFileName("Ü.json").ok());
  for (const std::string name :
       {"", "/etc/passwd", "..", "../a", "a/../b", "a//b", "a/", "./a", "a\\b", "a\nb", "\xff"})
    EXPECT_FALSE(CheckFileName(name).ok()) << name;
  EXPECT_FALSE(CheckFileName(std::string("a\0b", 3)).ok());
  const std::string part(kMaxFileNamePartBytes, 'a');
  EXPECT_TRUE(CheckFileName(part).ok());
  EXPECT_FALSE(CheckFileName(part + "a").ok());
  EXPECT_THAT(CheckFileName("../a").message(), HasSubstr("reaches outside"));
}

}  // namespace
}  // namespace tessera::hub
