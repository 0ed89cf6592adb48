// SPDX-License-Identifier: Apache-2.0
#include "support/fake_text.h"

#include <utility>

namespace tessera::testing {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

size_t CharacterBytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

/// Moves whole characters from `pending` to the result; with `is_end` also what is broken.
std::string TakeCharacters(std::string* pending, bool is_end) {
  std::string text;
  while (!pending->empty()) {
    const size_t need = CharacterBytes(static_cast<unsigned char>(pending->front()));
    size_t have = need == 0 ? 0 : 1;
    while (have > 0 && have < need && have < pending->size() &&
           (static_cast<unsigned char>((*pending)[have]) & 0xC0) == 0x80)
      ++have;
    if (need > 0 && have == need) {
      text += pending->substr(0, need);
      pending->erase(0, need);
    } else if (have == pending->size() && !is_end) {
      break;  // May still become whole.
    } else {
      text += kReplacement;
      pending->erase(0, have == 0 ? 1 : have);
    }
  }
  return text;
}

}  // namespace

FakeTokenizer::FakeTokenizer(std::vector<std::string> specials, text::TokenId bos)
    : specials_(std::move(specials)), bos_(bos) {}

Result<std::vector<text::TokenId>> FakeTokenizer::Encode(std::string_view text,
                                                         const text::EncodeOptions& options) const {
  std::vector<text::TokenId> ids;
  if (options.add_special && bos_ >= 0) ids.push_back(bos_);
  while (!text.empty()) {
    text::TokenId id = static_cast<unsigned char>(text.front());
    size_t used = 1;
    for (size_t i = 0; options.parse_special && i < specials_.size(); ++i) {
      if (!text.starts_with(specials_[i])) continue;
      id = static_cast<text::TokenId>(256 + i);
      used = specials_[i].size();
      break;
    }
    ids.push_back(id);
    text.remove_prefix(used);
  }
  return ids;
}

std::string FakeTokenizer::TokenBytes(text::TokenId id) const {
  if (id < 0 || id >= vocab_size()) return {};
  if (id >= 256) return specials_[static_cast<size_t>(id - 256)];
  return std::string(1, static_cast<char>(id));
}

Result<std::string> FakeTokenizer::Decode(std::span<const text::TokenId> ids,
                                          bool skip_special) const {
  std::string bytes;
  for (const text::TokenId id : ids) {
    if (id < 0 || id >= vocab_size()) return Fail(InvalidArgument("id out of range"));
    if (!skip_special || !IsSpecial(id)) bytes += TokenBytes(id);
  }
  return TakeCharacters(&bytes, true);
}

std::vector<text::TokenId> FakeTokenizer::SpecialIds() const {
  std::vector<text::TokenId> ids;
  for (text::TokenId id = 256; id < vocab_size(); ++id) ids.push_back(id);
  return ids;
}

text::TokenId FakeTokenizer::FindToken(std::string_view text) const {
  for (size_t i = 0; i < specials_.size(); ++i)
    if (specials_[i] == text) return static_cast<text::TokenId>(256 + i);
  return text.size() == 1 ? static_cast<unsigned char>(text.front()) : -1;
}

Result<std::string> FakeDetokenizer::Push(text::TokenId id) {
  if (id < 0 || id >= tokenizer_->vocab_size()) return Fail(InvalidArgument("id out of range"));
  if (!skip_special_ || !tokenizer_->IsSpecial(id)) pending_ += tokenizer_->TokenBytes(id);
  return TakeCharacters(&pending_, false);
}

Result<std::string> FakeChatTemplate::Render(const text::RenderInput& input) const {
  std::string text;
  for (const json::Value& value : input.messages.as_array()) {
    const json::Object& message = value.as_object();
    TESSERA_ASSIGN_OR_RETURN(const std::string role, json::NeedString(message, "role"));
    TESSERA_ASSIGN_OR_RETURN(const std::string content, json::NeedString(message, "content"));
    if (content == "raise") return Fail(InvalidArgument("the template says no"));
    text += "<|im_start|>" + role + "\n" + content + "<|im_end|>\n";
  }
  if (input.add_generation_prompt) text += "<|im_start|>assistant\n";
  return text;
}

Result<std::string> FakeChatTemplate::RenderRequest(std::string_view request_json,
                                                    int64_t now_unix_seconds) const {
  TESSERA_ASSIGN_OR_RETURN(const json::Value request, json::Parse(request_json, {}, "request"));
  text::RenderInput input;
  input.messages = request.at("messages");
  input.now_unix_seconds = now_unix_seconds;
  return Render(input);
}

Result<std::string> FakeDetokenizer::Flush() {
  return TakeCharacters(&pending_, true);
}

}  // namespace tessera::testing
