// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/fixtures.h"
#include "text/tokenizer.h"

namespace tessera::text {
namespace {

/// A pipeline of bytes "<0x00>".. and a few characters, with `decoder` as JSON.
std::string ByteFallbackJson(std::string_view decoder) {
  std::string vocab = R"("<unk>":0,"a":1,"▁":2)";
  for (int byte = 0; byte < 256; ++byte) vocab += fmt::format(",\"<0x{:02X}>\":{}", byte, byte + 3);
  return fmt::format(
      R"({{"version":"1.0","added_tokens":[],"normalizer":{{"type":"Replace","pattern":{{"String":" "}},)"
      R"("content":"▁"}},"pre_tokenizer":null,"post_processor":null,"decoder":{},"model":{{"type":"BPE",)"
      R"("unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{{{}}},"merges":[]}}}})",
      decoder, vocab);
}

constexpr std::string_view kSpmDecoder =
    R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
    R"({"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";

TokenId ByteId(int byte) {
  return byte + 3;
}

std::string StreamAll(Detokenizer& stream, const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) text += stream.Push(id).value();
  return text + stream.Flush().value();
}

TEST(Detokenizer, GoodBytesOfARunAreNotHeldBack) {
  const auto tokenizer = Tokenizer::FromJson(ByteFallbackJson(kSpmDecoder)).value();
  const auto stream = Detokenizer::Make(tokenizer, true);
  // "é水" as bytes, then the first byte of another character.
  EXPECT_EQ(stream->Push(ByteId(0xC3)).value(), "");
  EXPECT_EQ(stream->Push(ByteId(0xA9)).value(), "é");
  EXPECT_EQ(stream->Push(ByteId(0xE6)).value(), "");
  EXPECT_EQ(stream->Push(ByteId(0xB0)).value(), "");
  EXPECT_EQ(stream->Push(ByteId(0xB4)).value(), "水");
  EXPECT_EQ(stream->Push(ByteId(0xE6)).value(), "");
  EXPECT_EQ(stream->Flush().value(), "\uFFFD");
  // After the end it starts anew.
  EXPECT_EQ(stream->Push(1).value(), "a");
  EXPECT_EQ(stream->Flush().value(), "");
}

TEST(Detokenizer, ARunThatIsBadFromItsStartEqualsTheWholeDecode) {
  const auto tokenizer = Tokenizer::FromJson(ByteFallbackJson(kSpmDecoder)).value();
  const std::vector<TokenId> ids = {1, ByteId(0xFF), ByteId(0xC3), ByteId(0xA9), 1, ByteId(0xE6),
                                    1};
  EXPECT_EQ(tokenizer->Decode(ids, true).value(), "a\uFFFD\uFFFD\uFFFDa\uFFFDa");
  const auto stream = Detokenizer::Make(tokenizer, true);
  EXPECT_EQ(StreamAll(*stream, ids), "a\uFFFD\uFFFD\uFFFDa\uFFFDa");
}

TEST(Detokenizer, TheLeadingSpaceIsStrippedOnceOverTokenBorders) {
  const auto tokenizer = Tokenizer::FromJson(ByteFallbackJson(kSpmDecoder)).value();
  const std::vector<TokenId> ids = {2, 2, 1, 2};
  const auto stream = Detokenizer::Make(tokenizer, true);
  EXPECT_EQ(stream->Push(2).value(), "");
  EXPECT_EQ(stream->Push(2).value(), " ");
  EXPECT_EQ(stream->Push(1).value(), "a");
  EXPECT_EQ(stream->Push(2).value(), " ");
  EXPECT_EQ(stream->Flush().value(), "");
  EXPECT_EQ(tokenizer->Decode(ids, true).value(), " a ");
}

TEST(Detokenizer, StreamsOfEveryDecoderEqualTheWholeDecode) {
  const std::vector<std::string_view> decoders = {
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})",
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true})",
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":true})",
      R"({"type":"WordPiece","prefix":"a","cleanup":true})",
      R"({"type":"BPEDecoder","suffix":"▁"})",
      R"({"type":"ByteFallback"})",
      R"({"type":"Fuse"})",
      R"({"type":"CTC","pad_token":"<unk>","word_delimiter_token":"▁","cleanup":true})",
      R"({"type":"Replace","pattern":{"Regex":"[a▁]"},"content":"-"})",
      R"({"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Replace",)"
      R"("pattern":{"String":"aa"},"content":"b"}]})",
      R"({"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Strip","content":"▁","start":1,"stop":2}]})",
      "null",
      kSpmDecoder};
  for (const std::string_view decoder : decoders) {
    SCOPED_TRACE(decoder);
    const auto made = Tokenizer::FromJson(ByteFallbackJson(decoder));
    ASSERT_TRUE(made.has_value()) << StatusOf(made).ToString();
    const auto stream = Detokenizer::Make(*made, true);
    for (const std::vector<TokenId>& ids :
         std::vector<std::vector<TokenId>>{{1},
                                           {2, 1},
                                           {1, 1, 1, 1, 1},
                                           {2, 2, 1, 2, 1, 1},
                                           {1, 2, 1, 2},
                                           {1, ByteId(0xC3), ByteId(0xA9), 1},
                                           {1, ByteId(0xC3), 2},
                                           {ByteId(0x41), 1, 1, 1, 1}}) {
      EXPECT_EQ(StreamAll(*stream, ids), (*made)->Decode(ids, true).value())
          << ::testing::PrintToString(ids);
    }
  }
}

TEST(Detokenizer, OutlivesItsTokenizer) {
  auto tokenizer = Tokenizer::FromJson(
                       testing::ReadAll(testing::Shared("fixtures/tiny_llama/hf/tokenizer.json")))
                       .value();
  const auto ids = tokenizer->Encode("the boat", {}).value();
  const auto stream = Detokenizer::Make(tokenizer, true);
  tokenizer.reset();
  EXPECT_EQ(StreamAll(*stream, ids), "the boat");
}

}  // namespace
}  // namespace tessera::text
