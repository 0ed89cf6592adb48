// SPDX-License-Identifier: Apache-2.0
#include "compiler/importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/fixtures.h"

namespace tessera::compiler {
namespace {

using ::testing::ElementsAre;

TEST(Importance, NamesAreTranslatedMatrixByMatrix) {
  EXPECT_EQ(GgufNameOf("model.layers.12.self_attn.q_proj.weight"), "blk.12.attn_q.weight");
  EXPECT_EQ(GgufNameOf("model.layers.0.mlp.down_proj.weight"), "blk.0.ffn_down.weight");
  EXPECT_EQ(GgufNameOf("model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(GgufNameOf("lm_head.weight"), "output.weight");
  for (const char* other : {"blk.0.attn_q.weight", "model.layers.x.mlp.up_proj.weight",
                            "model.layers.", "model.layers.3", "model.layers.3.mlp.up_proj", ""})
    EXPECT_EQ(GgufNameOf(other), other);
}

void Put(std::string* file, int32_t value) {
  file->append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void Put(std::string* file, std::string_view name, std::vector<float> sums) {
  Put(file, static_cast<int32_t>(name.size()));
  file->append(name);
  Put(file, 1);
  Put(file, static_cast<int32_t>(sums.size()));
  file->append(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(float));
}

TEST(Importance, IsFoundByEitherNameWithMeanOne) {
  const testing::TempDir dir;
  std::string file;
  Put(&file, 2);
  Put(&file, "blk.1.attn_v.weight", {1, 2, 3});
  Put(&file, "output.weight", {4e30F, 0});
  ASSERT_TRUE(WriteFileAtomic(dir.path() / "imatrix.dat", file).ok());
  const auto importance = Importance::Open(dir.path() / "imatrix.dat");
  ASSERT_TRUE(importance.has_value()) << importance.error().ToString();
  const Importance& i = **importance;
  ASSERT_NE(i.Find("blk.1.attn_v.weight"), nullptr);
  EXPECT_THAT(*i.Find("blk.1.attn_v.weight"), ElementsAre(0.5F, 1, 1.5F));
  EXPECT_EQ(i.Find("model.layers.1.self_attn.v_proj.weight"), i.Find("blk.1.attn_v.weight"));
  EXPECT_THAT(*i.Find("lm_head.weight"), ElementsAre(2, 1e-4F)) << "never nothing";
  EXPECT_EQ(i.Find("model.embed_tokens.weight"), i.Find("output.weight")) << "tied";
  EXPECT_EQ(i.Find("blk.0.attn_v.weight"), nullptr);
  EXPECT_EQ(i.sha256().size(), 64U);
}

}  // namespace
}  // namespace tessera::compiler
