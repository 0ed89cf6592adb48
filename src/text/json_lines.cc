// SPDX-License-Identifier: Apache-2.0
#include "text/json_lines.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "base/json.h"
#include "text/limits.h"

namespace tessera::text {
namespace {

/// The value of the only key that a line may have. A misspelt or surplus key is an error: ignoring
/// it would answer another question than was asked.
Result<json::Value> OnlyMember(std::string_view line, std::string_view key) {
  json::Limits limits;
  limits.max_bytes = kMaxJsonLineBytes;
  TESSERA_ASSIGN_OR_RETURN(json::Value value, json::Parse(line, limits, "line"));
  if (!value.is_object()) {
    return Fail(InvalidArgument(
        fmt::format("expected an object with \"{}\", got {}", key, json::KindName(value))));
  }
  json::Object& object = value.get_object();
  for (const auto& member : object) {
    if (member.key() != key) {
      return Fail(InvalidArgument(fmt::format("unknown key \"{}\", expected only \"{}\"",
                                              std::string_view(member.key()), key)));
    }
  }
  json::Value* member = object.if_contains(key);
  if (member == nullptr) return Fail(InvalidArgument(fmt::format("\"{}\" is missing", key)));
  return std::move(*member);
}

Result<std::vector<TokenId>> ToIds(const json::Value& value) {
  if (!value.is_array()) {
    return Fail(InvalidArgument(
        fmt::format("\"ids\" is {}, expected an array of token ids", json::KindName(value))));
  }
  std::vector<TokenId> ids;
  ids.reserve(value.get_array().size());
  for (const json::Value& item : value.get_array()) {
    const int64_t* id = item.if_int64();
    if (id == nullptr || *id < 0 || *id > std::numeric_limits<TokenId>::max()) {
      return Fail(InvalidArgument(fmt::format("\"ids\"[{}] is {}, expected a token id", ids.size(),
                                              json::Serialize(item).substr(0, 40))));
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

Result<std::string> Tokenize(const Tokenizer& tokenizer, std::string_view line,
                             const EncodeOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const json::Value text, OnlyMember(line, "text"));
  if (!text.is_string()) {
    return Fail(
        InvalidArgument(fmt::format("\"text\" is {}, expected a string", json::KindName(text))));
  }
  TESSERA_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                           tokenizer.Encode(text.get_string(), options));
  return fmt::format("{{\"ids\":[{}]}}", fmt::join(ids, ","));
}

Result<std::string> Detokenize(const Tokenizer& tokenizer, std::string_view line,
                               bool skip_special) {
  TESSERA_ASSIGN_OR_RETURN(const json::Value value, OnlyMember(line, "ids"));
  TESSERA_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, ToIds(value));
  TESSERA_ASSIGN_OR_RETURN(const std::string text, tokenizer.Decode(ids, skip_special));
  return json::Serialize(json::Object{{"text", text}});
}

}  // namespace

std::string TokenizeLine(const Tokenizer& tokenizer, std::string_view line,
                         const EncodeOptions& options) {
  const Result<std::string> answer = Tokenize(tokenizer, line, options);
  return answer.has_value() ? *answer : ErrorLine(answer.error());
}

std::string DetokenizeLine(const Tokenizer& tokenizer, std::string_view line, bool skip_special) {
  const Result<std::string> answer = Detokenize(tokenizer, line, skip_special);
  return answer.has_value() ? *answer : ErrorLine(answer.error());
}

std::string ErrorLine(const Status& status) {
  return json::Serialize(json::Object{{"error", status.ToString()}});
}

}  // namespace tessera::text
