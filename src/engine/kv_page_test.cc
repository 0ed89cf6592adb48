// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_page.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera::engine {
namespace {

struct Sample {
  std::string payload = std::string(300, 'x') + "end";
  KvPageName name{RootHash("model"), HashOfPage(RootHash("model"), std::vector<TokenId>{1, 2, 3}),
                  payload.size()};
  KvPageHeader header = EncodeKvPageHeader(name, AsBytes(payload));

  Status Check() const { return CheckKvPage(header, AsBytes(payload), name); }
};

TEST(PageHash, IsOfAllTokensBeforeAndOfWhatComputes) {
  const std::vector<TokenId> a = {1, 2}, b = {3, 4}, ab = {1, 2, 3, 4}, big = {1, 258};
  const PageHash root = RootHash("model");
  EXPECT_EQ(HashOfPage(HashOfPage(root, a), b), HashOfPage(HashOfPage(root, a), b));
  EXPECT_NE(HashOfPage(HashOfPage(root, a), b), HashOfPage(HashOfPage(root, b), a));
  EXPECT_NE(HashOfPage(HashOfPage(root, a), b), HashOfPage(root, ab));
  EXPECT_NE(HashOfPage(HashOfPage(root, b), b), HashOfPage(HashOfPage(root, a), b));
  EXPECT_NE(HashOfPage(root, a), HashOfPage(RootHash("model2"), a));
  EXPECT_NE(HashOfPage(root, big), HashOfPage(root, a));
  // As written down: files of earlier versions are found again.
  EXPECT_EQ(HexOf(HashOfPage(RootHash("model"), std::vector<TokenId>{1, 2, 3})),
            Sha256Hex(AsBytes(std::string(AsText(ByteSpan(RootHash("model")))) +
                              std::string("\1\0\0\0\2\0\0\0\3\0\0\0", 12))));
}

TEST(KvPage, WhatWasEncodedIsSound) {
  const Sample sample;
  EXPECT_TRUE(sample.Check().ok());
  EXPECT_EQ(AsText(ByteSpan(sample.header)).substr(0, 8), "tskvpage");
}

TEST(KvPage, AnyChangedByteIsFound) {
  Sample sample;
  for (size_t i = 0; i < sample.header.size(); ++i) {
    sample.header[i] ^= std::byte{1};
    const Status status = sample.Check();
    EXPECT_EQ(status.code(), Code::kDataLoss) << "byte " << i << " of the header";
    sample.header[i] ^= std::byte{1};
  }
  for (size_t i = 0; i < sample.payload.size(); ++i) {
    sample.payload[i] ^= 0x40;
    EXPECT_EQ(sample.Check().code(), Code::kDataLoss) << "byte " << i << " of the payload";
    sample.payload[i] ^= 0x40;
  }
  EXPECT_TRUE(sample.Check().ok());
}

TEST(KvPage, AnotherSizeIsNotTheSamePage) {
  for (const int more : {-1, 1}) {
    Sample sample;
    sample.payload.resize(sample.payload.size() + static_cast<size_t>(more));
    EXPECT_EQ(sample.Check().code(), Code::kDataLoss);
    // Nor when the header says so.
    sample.name.payload_bytes = sample.payload.size();
    EXPECT_EQ(sample.Check().code(), Code::kDataLoss);
  }
}

TEST(KvPage, ASoundPageOfAnotherModelOrContextIsRefused) {
  const Sample sample;
  KvPageName other = sample.name;
  other.root = RootHash("another model");
  const Status root = CheckKvPage(sample.header, AsBytes(sample.payload), other);
  EXPECT_NE(root.message().find("root hash"), std::string::npos) << root.ToString();
  other = sample.name;
  other.hash = HashOfPage(sample.name.hash, std::vector<TokenId>{4});
  const Status page = CheckKvPage(sample.header, AsBytes(sample.payload), other);
  EXPECT_NE(page.message().find("page hash"), std::string::npos) << page.ToString();
}

TEST(KvPage, AnEmptyPayloadIsAPageToo) {
  const KvPageName name{RootHash("m"), RootHash("p"), 0};
  EXPECT_TRUE(CheckKvPage(EncodeKvPageHeader(name, {}), {}, name).ok());
}

}  // namespace
}  // namespace tessera::engine
