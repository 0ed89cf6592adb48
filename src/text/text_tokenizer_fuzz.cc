// SPDX-License-Identifier: Apache-2.0
//
// The first byte decides: a tokenizer.json from outside, or a text for a known tokenizer. A text
// must come back from its ids, at once and as a stream; whatever loads must encode without a crash.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"

namespace tessera::text {
namespace {

constexpr std::string_view kKnown =
    R"({"version":"1.0","added_tokens":[{"id":256,"content":"<|end|>","single_word":false,"lstrip":false,)"
    R"("rstrip":false,"normalized":false,"special":true}],"normalizer":null,"pre_tokenizer":{"type":)"
    R"("ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":true},"post_processor":null,)"
    R"("decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":true},)"
    R"("model":{"type":"BPE","vocab":{)";

/// All bytes as GPT-2 writes them.
std::string KnownJson() {
  std::string json(kKnown);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const int code = printable ? byte : next++;
    if (byte > 0) json += ',';
    json += '"';
    if (code == '"' || code == '\\') json += '\\';
    if (code < 0x80) {
      json += static_cast<char>(code);
    } else {
      json += static_cast<char>(0xC0 | (code >> 6));
      json += static_cast<char>(0x80 | (code & 0x3F));
    }
    json += "\":" + std::to_string(byte);
  }
  return json + "},\"merges\":[]}}";
}

void CheckText(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text) {
  for (const bool parse_special : {false, true}) {
    const auto ids =
        tokenizer->Encode(text, {.add_special = false, .parse_special = parse_special});
    if (!ids.has_value()) {  // Only text that is not UTF-8.
      TESSERA_CHECK(ids.error().code() == Code::kInvalidArgument);
      return;
    }
    const auto back = tokenizer->Decode(*ids, false);
    TESSERA_CHECK(back.has_value() && *back == text);
    const auto stream = Detokenizer::Make(tokenizer, false);
    std::string streamed;
    for (const TokenId id : *ids) streamed += stream->Push(id).value();
    streamed += stream->Flush().value();
    TESSERA_CHECK(streamed == text);
  }
}

void CheckJson(std::string_view json) {
  const auto tokenizer = Tokenizer::FromJson(json);
  if (!tokenizer.has_value()) {
    TESSERA_CHECK(!tokenizer.error().message().empty());
    return;
  }
  const auto ids = (*tokenizer)->Encode("A b, 1 水 <s>", {});
  if (ids.has_value()) (void)(*tokenizer)->Decode(*ids, true);
  TESSERA_CHECK(Tokenizer::FromJson((*tokenizer)->ToJson()).has_value());
}

}  // namespace
}  // namespace tessera::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto known = tessera::text::Tokenizer::FromJson(tessera::text::KnownJson()).value();
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 't') {
    tessera::text::CheckText(known, rest);
  } else {
    tessera::text::CheckJson(rest);
  }
  return 0;
}
