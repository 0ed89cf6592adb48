// SPDX-License-Identifier: Apache-2.0
#include "text/chat_prompt.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace tessera::text {
namespace {

/// Private use characters: valid in UTF-8 and JSON, meaningless in text.
constexpr uint32_t kFirstMarker = 0xE000;
constexpr uint32_t kLastMarker = 0xF8FF;

std::string EncodeUtf8(uint32_t code) {  // Of the range above: three bytes.
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

/// Bytes of the character at the front: a marker must not split one.
size_t FirstCharacterBytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && IsUtf8Continuation(text[bytes])) ++bytes;
  return bytes;
}

size_t GuardString(const SpecialTokens& specials, std::string_view marker,
                   boost::json::string* text) {
  const std::vector<SpecialTokens::Match> matches = specials.FindAll(*text);
  if (matches.empty()) return 0;
  const std::string_view source = *text;
  std::string guarded;
  size_t at = 0;
  for (const SpecialTokens::Match& match : matches) {
    const size_t cut = match.begin + FirstCharacterBytes(source.substr(match.begin));
    guarded += source.substr(at, cut - at);
    guarded += marker;
    at = cut;
  }
  guarded += source.substr(at);
  *text = guarded;
  return matches.size();
}

/// Text without its markers, and where they stood in it.
struct Unmarked {
  std::string text;
  std::vector<size_t> guards;  // Ascending.
};

Unmarked RemoveMarkers(std::string_view rendered, std::string_view marker) {
  Unmarked result;
  size_t at = 0;
  while (true) {
    const size_t found = rendered.find(marker, at);
    result.text += rendered.substr(at, found == std::string_view::npos ? found : found - at);
    if (found == std::string_view::npos) return result;
    result.guards.push_back(result.text.size());
    at = found + marker.size();
  }
}

/// False when there is no last message with text.
bool AppendToLast(const std::string& text, json::Value* messages) {
  json::Array* array = messages->if_array();
  if (array == nullptr || array->empty() || !array->back().is_object()) return false;
  json::Value* content = array->back().get_object().if_contains("content");
  if (content == nullptr || !content->is_string()) return false;
  content->get_string().append(text);
  return true;
}

bool HasGuard(const std::vector<size_t>& guards, size_t begin, size_t end) {
  const auto first = std::ranges::upper_bound(guards, begin);
  return first != guards.end() && *first < end;
}

}  // namespace

SpecialTokens::SpecialTokens(const Tokenizer& tokenizer)
    : SpecialTokens([&tokenizer] {
        std::vector<std::string> texts;
        for (const TokenId id : tokenizer.SpecialIds()) texts.push_back(tokenizer.TokenText(id));
        return texts;
      }()) {}

SpecialTokens::SpecialTokens(std::vector<std::string> texts) : texts_(std::move(texts)) {
  // One character has no inside for a marker; such a token would need another way to be told apart.
  std::erase_if(
      texts_, [](const std::string& t) { return t.empty() || FirstCharacterBytes(t) == t.size(); });
  std::ranges::sort(texts_, [](const std::string& a, const std::string& b) {
    const auto x = static_cast<unsigned char>(a.front());
    const auto y = static_cast<unsigned char>(b.front());
    return std::tuple(x, b.size(), std::string_view(a)) <
           std::tuple(y, a.size(), std::string_view(b));
  });
  by_first_.assign(256, {0, 0});
  for (size_t i = 0; i < texts_.size(); ++i) {
    auto& [begin, end] = by_first_[static_cast<unsigned char>(texts_[i].front())];
    if (begin == end) begin = i;
    end = i + 1;
  }
}

std::vector<SpecialTokens::Match> SpecialTokens::FindAll(std::string_view text) const {
  std::vector<Match> matches;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    const auto [begin, end] = by_first_[static_cast<unsigned char>(text[at])];
    for (size_t i = begin; i < end && length == 0; ++i)
      if (text.substr(at).starts_with(texts_[i])) length = texts_[i].size();
    if (length > 0) matches.push_back({at, at + length});
    at += std::max<size_t>(length, 1);
  }
  return matches;
}

Result<std::string> ChooseMarker(std::string_view text) {
  for (uint32_t code = kFirstMarker; code <= kLastMarker; ++code) {
    std::string marker = EncodeUtf8(code);
    if (text.find(marker) == std::string_view::npos) return marker;
  }
  return Fail(InvalidArgument("the messages use every private use character of Unicode"));
}

size_t GuardStrings(const SpecialTokens& specials, std::string_view marker, json::Value* value) {
  size_t count = 0;
  if (auto* text = value->if_string()) {
    count += GuardString(specials, marker, text);
  } else if (json::Array* array = value->if_array()) {
    for (json::Value& entry : *array) count += GuardStrings(specials, marker, &entry);
  } else if (json::Object* object = value->if_object()) {
    json::Object guarded;
    for (auto& member : *object) {
      // No template looks for a key that holds a special token: it is a user's.
      boost::json::string key(member.key());
      count += GuardString(specials, marker, &key);
      if (member.key() != "role") count += GuardStrings(specials, marker, &member.value());
      guarded.emplace(key, std::move(member.value()));
    }
    *object = std::move(guarded);
  }
  return count;
}

std::vector<PromptSegment> SplitPrompt(std::string_view rendered, std::string_view marker,
                                       const SpecialTokens& specials) {
  const Unmarked unmarked = RemoveMarkers(rendered, marker);
  const std::string_view text = unmarked.text;
  std::vector<PromptSegment> segments;
  const auto add = [&](size_t begin, size_t end, bool parse_special) {
    if (begin == end) return;
    // Neighbours that both may be parsed are one call to the tokenizer.
    if (parse_special && !segments.empty() && segments.back().parse_special) {
      segments.back().text += text.substr(begin, end - begin);
    } else {
      segments.push_back({std::string(text.substr(begin, end - begin)), parse_special});
    }
  };
  size_t begin = 0;
  for (const SpecialTokens::Match& match : specials.FindAll(text)) {
    if (HasGuard(unmarked.guards, match.begin, match.end)) continue;
    add(begin, match.begin, !HasGuard(unmarked.guards, begin, match.begin));
    add(match.begin, match.end, true);
    begin = match.end;
  }
  add(begin, text.size(), !HasGuard(unmarked.guards, begin, text.size()));
  return segments;
}

Result<ChatPrompt> BuildChatPrompt(RenderInput input, const ChatTemplate& chat_template,
                                   const Tokenizer& tokenizer, const SpecialTokens& specials,
                                   const ChatPromptOptions& options) {
  // Documents and tools are written by users just as messages are.
  std::string everything = json::Serialize(input.messages) + json::Serialize(input.documents) +
                           json::Serialize(input.tools) + chat_template.source();
  TESSERA_ASSIGN_OR_RETURN(const std::string marker, ChooseMarker(everything));
  const size_t guards = GuardStrings(specials, marker, &input.messages) +
                        GuardStrings(specials, marker, &input.documents) +
                        GuardStrings(specials, marker, &input.tools);
  std::string end;  // Stands where the last message's content ends.
  if (options.continues_last) {
    TESSERA_ASSIGN_OR_RETURN(end, ChooseMarker(everything + marker));
    if (!AppendToLast(end, &input.messages))
      return Fail(InvalidArgument("the last message has no text to go on from"));
  }
  TESSERA_ASSIGN_OR_RETURN(std::string rendered, chat_template.Render(input));
  if (options.continues_last) {
    const size_t at = rendered.rfind(end);
    if (at == std::string::npos)
      return Fail(InvalidArgument("the chat template leaves out the last message's text"));
    rendered.resize(at);
  }
  if (guards == 0) {
    TESSERA_ASSIGN_OR_RETURN(
        std::vector<TokenId> ids,
        tokenizer.Encode(rendered, {.add_special = false, .parse_special = true}));
    return ChatPrompt{std::move(rendered), std::move(ids)};
  }
  ChatPrompt prompt;
  for (const PromptSegment& segment : SplitPrompt(rendered, marker, specials)) {
    TESSERA_ASSIGN_OR_RETURN(
        const std::vector<TokenId> ids,
        tokenizer.Encode(segment.text,
                         {.add_special = false, .parse_special = segment.parse_special}));
    prompt.text += segment.text;
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
  }
  return prompt;
}

}  // namespace tessera::text
