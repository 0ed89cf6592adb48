// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera {
namespace {

/// The plain bit packing, for any value, also those that have no well-formed encoding.
std::string Pack(uint32_t code, size_t size) {
  static constexpr unsigned kLead[] = {0, 0, 0xC0, 0xE0, 0xF0, 0xF8};
  if (size == 1) return {static_cast<char>(code)};
  std::string text(size, '\0');
  for (size_t i = size - 1; i > 0; --i, code >>= 6) text[i] = static_cast<char>(0x80 | (code & 63));
  text[0] = static_cast<char>(kLead[size] | code);
  return text;
}

size_t ShortestSize(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

TEST(Utf8, EveryCodePointHasOneEncoding) {
  for (uint32_t code = 0; code < 0x200000; ++code) {
    const bool is_scalar = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    for (size_t size = ShortestSize(code); size <= 4; ++size) {
      const std::string text = Pack(code, size);
      const size_t expected = is_scalar && size == ShortestSize(code) ? size : 0;
      ASSERT_EQ(Utf8CharacterBytes(text), expected) << std::hex << code << " in " << size;
      ASSERT_EQ(IsUtf8(text), expected > 0) << std::hex << code << " in " << size;
    }
  }
}

TEST(Utf8, BoundariesOfEachLength) {
  const std::vector<std::string> good = {
      std::string("\0", 1), "\x7F",         "\xC2\x80",         "\xDF\xBF",        "\xE0\xA0\x80",
      "\xED\x9F\xBF",       "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
  for (const std::string& text : good) {
    EXPECT_EQ(Utf8CharacterBytes(text), text.size());
    EXPECT_EQ(Utf8CharacterBytes(text + "x"), text.size());
    EXPECT_EQ(CodePoints(text), 1);
  }
  const std::vector<std::string> bad = {
      "\x80",              // A continuation alone,
      "\xBF",              //
      "\xC0\x80",          // overlong forms,
      "\xC1\xBF",          //
      "\xE0\x9F\xBF",      //
      "\xF0\x8F\xBF\xBF",  //
      "\xED\xA0\x80",      // surrogates, first and last,
      "\xED\xBF\xBF",      //
      "\xF4\x90\x80\x80",  // past U+10FFFF,
      "\xF5\x80\x80\x80",  // bytes that begin nothing.
      "\xF8\x88\x80\x80\x80",
      "\xFE",
      "\xFF",
  };
  for (const std::string& text : bad) {
    EXPECT_EQ(Utf8CharacterBytes(text), 0u);
    EXPECT_FALSE(IsUtf8("ok" + text));
  }
}

TEST(Utf8, TruncatedOrBrokenCharactersAreNone) {
  for (const std::string text : {"\xC2\x80", "\xE2\x82\xAC", "\xF0\x9F\x99\x82"}) {
    for (size_t size = 1; size < text.size(); ++size) {
      EXPECT_EQ(Utf8CharacterBytes(text.substr(0, size)), 0u);
      EXPECT_FALSE(IsUtf8("a" + text.substr(0, size)));
      for (const char wrong : {'\x7F', '\xC0', '\xFF', 'a', '\0'}) {
        std::string broken = text;
        broken[size] = wrong;
        EXPECT_EQ(Utf8CharacterBytes(broken), 0u);
        EXPECT_FALSE(IsUtf8(broken));
      }
    }
  }
}

TEST(Utf8, EmptyTextIsWellFormedAndHasNoCharacter) {
  EXPECT_EQ(Utf8CharacterBytes(""), 0u);
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_EQ(CodePoints(""), 0);
}

TEST(Utf8, EscapesOnlyWhatIsNoCharacter) {
  EXPECT_EQ(EscapeNonUtf8(""), "");
  EXPECT_EQ(EscapeNonUtf8("a\u00e9\\n"), "a\u00e9\\n");
  EXPECT_EQ(EscapeNonUtf8("a\xE9\xFFz"), "a\\xE9\\xFFz");
  EXPECT_EQ(EscapeNonUtf8("\xE2\x82"), "\\xE2\\x82");
}

TEST(Utf8, CountsCodePointsNotBytes) {
  EXPECT_EQ(CodePoints("a\u00e9\u20ac\U0001F642"), 4);
}

}  // namespace
}  // namespace tessera
