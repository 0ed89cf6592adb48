// SPDX-License-Identifier: Apache-2.0
#include "gateway/download/model_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "gateway/download/url_signer.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

class ModelFilesTest : public ::testing::Test {
 protected:
  ModelFilesTest() {
    Put("models/one.gguf");
    Put("models/folder/config.json");
    Put("models/folder/sub/part.safetensors");
    Put("models/folder/.notes");
    Put("models/folder/.git/config");
    Put("secret");
    fs::create_symlink(dir_.path() / "secret", dir_.path() / "models/folder/link");
    fs::create_directory_symlink(dir_.path(), dir_.path() / "models/folder/up");
    models_ = *ModelTable::Read({.aliases_file = {}, .model_root = dir_.path() / "models"});
  }
  void Put(const std::string& name) const {
    const fs::path path = dir_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << name;
  }
  /// Names, or the code of the error.
  std::vector<std::string> Names(const std::string& model, const std::string& revision = "") const {
    EndpointSpec spec;
    spec.model_name = model;
    if (!revision.empty()) spec.engine["revision"] = revision;
    const auto files = FindModelFiles(spec, models_, dir_.path() / "hub");
    if (!files.has_value()) return {std::string(CodeName(files.error().code()))};
    std::vector<std::string> names;
    for (const ModelFile& file : *files) names.push_back(file.name);
    return names;
  }

  const TempDir dir_;
  ModelTable models_;
};

using Texts = std::vector<std::string>;

TEST_F(ModelFilesTest, OfAFileAndOfAFolder) {
  EXPECT_EQ(Names("one.gguf"), Texts{"one.gguf"});
  EXPECT_EQ(Names("folder"), (Texts{"config.json", "sub/part.safetensors"}))
      << "neither links nor what is hidden";
  EndpointSpec checkpoint;
  checkpoint.model_name = "any";
  checkpoint.checkpoint_path = "one.gguf";
  EXPECT_EQ(FindModelFiles(checkpoint, models_, {})->at(0).path,
            fs::canonical(dir_.path() / "models/one.gguf"));
}

TEST_F(ModelFilesTest, OfARepositoryInTheCache) {
  EXPECT_EQ(Names("org/name"), Texts{"NOT_FOUND"}) << "not downloaded";
  Put("hub/models--org--name/blobs/abc");
  const fs::path snapshot = dir_.path() / "hub/models--org--name/snapshots/c0ffee";
  fs::create_directories(snapshot / "sub");
  fs::create_symlink("../../blobs/abc", snapshot / "model.safetensors");
  fs::create_symlink("../../../blobs/abc", snapshot / "sub/part.json");
  fs::create_symlink(dir_.path() / "secret", snapshot / "evil");
  fs::create_directories(dir_.path() / "hub/models--org--name/refs");
  std::ofstream(dir_.path() / "hub/models--org--name/refs/main") << "c0ffee";
  const Texts all{"model.safetensors", "sub/part.json"};
  EXPECT_EQ(Names("org/name"), all) << "links lead to blobs only";
  EXPECT_EQ(Names("org/name:Q4_K_M"), all);
  EXPECT_EQ(Names("org/name@c0ffee"), all) << "a commit";
  EXPECT_EQ(Names("org/name", "c0ffee"), all);
  EXPECT_EQ(Names("org/name", "other"), Texts{"NOT_FOUND"});
  for (const char* bad : {"..", "../../..", "/etc"})
    EXPECT_EQ(Names("org/name", bad), Texts{"NOT_FOUND"}) << bad;
  EXPECT_EQ(Names("org/name@../../x"), Texts{"NOT_FOUND"});
}

TEST_F(ModelFilesTest, WhatIsKeptInNoFolderIsSaid) {
  EXPECT_EQ(Names("no such model"), Texts{"NOT_FOUND"});
  EXPECT_EQ(Names("https://huggingface.co/org/name"), Texts{"FAILED_PRECONDITION"});
}

TEST(UrlSigner, SignsOneThingUntilASecond) {
  const TempDir dir;
  const UrlSigner signer = *UrlSigner::Open(dir.path() / "key");
  const std::string token = signer.Sign("end_1\nfile", 100);
  EXPECT_TRUE(signer.Check("end_1\nfile", token, 100));
  EXPECT_FALSE(signer.Check("end_1\nfile", token, 101)) << "over";
  EXPECT_FALSE(signer.Check("end_1\nother", token, 100));
  EXPECT_FALSE(signer.Check("end_1\nfile", "9" + token, 100)) << "later than signed";
  for (const std::string& bad : {std::string(), std::string("100."), token + "0",
                                 token.substr(0, token.size() - 1), "+" + token})
    EXPECT_FALSE(signer.Check("end_1\nfile", bad, 100)) << bad;
  EXPECT_TRUE(UrlSigner::Open(dir.path() / "key")->Check("end_1\nfile", token, 100)) << "kept";
  EXPECT_FALSE(UrlSigner::Open(dir.path() / "key2")->Check("end_1\nfile", token, 100));
  std::ofstream(dir.path() / "key") << "x";
  EXPECT_EQ(StatusOf(UrlSigner::Open(dir.path() / "key")).code(), Code::kDataLoss);
}

}  // namespace
}  // namespace tessera::gateway
