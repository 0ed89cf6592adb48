// SPDX-License-Identifier: Apache-2.0
//
// The request schema of the OpenAI dialect as one table: every field we know, its type and range,
// where it may stand, what it means and what we do with it. Validation, the messages of errors and
// the reference page all come from it. Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/openai/error.h"

namespace tessera::server::openai {

enum class Kind : uint8_t {
  kString,
  kBool,
  kInteger,
  kNumber,
  kObject,
  kArray,
  kStringOrArray,
  kStringOrObject,
  kAny,
};

enum class Use : uint8_t {
  kUsed,
  kIgnored,  // Known to have no effect here; accepted without a word.
  kRefused,  // Would change the answer and is not built: 400 that names it.
};

// Where a field may stand.
inline constexpr unsigned kCompletions = 1;
inline constexpr unsigned kChat = 2;
inline constexpr unsigned kTokenize = 4;
inline constexpr unsigned kDetokenize = 8;
inline constexpr unsigned kApplyTemplate = 16;
inline constexpr unsigned kEmbeddings = 32;
inline constexpr unsigned kBoth = kCompletions | kChat;
/// What renders messages without generating.
inline constexpr unsigned kRender = kTokenize | kApplyTemplate;

struct Field {
  std::string_view name;
  unsigned apis;
  Kind kind;
  double low;  // Of numbers, inclusive; both 0: any.
  double high;
  Use use;
  std::string_view meaning;
};
/// Those of this dialect. Other dialects have tables of their own.
std::span<const Field> RequestFields();

/// Something done differently than asked: listed in the response's `warnings`.
struct Warning {
  std::string code;  // "unknown_field", "normalized".
  std::string param;
  std::string message;
};
/// For what a body can hold any number of. Beyond kWarningsHeldMax nothing is added.
void AddWarning(Warning warning, std::vector<Warning>* warnings);
/// The first kWarningsMax, then how many more.
json::Array WarningsBody(std::span<const Warning> warnings);

/// Checks every member of `body` against the table: type, range, refusals. JSON null means absent.
/// Returns a warning for each member that the table does not have for this api.
ApiResult<std::vector<Warning>> CheckFields(const json::Object& body, std::span<const Field> fields,
                                            unsigned api);
/// `strict` in a body turns its warnings into an error: 400 about the first of them.
std::optional<ApiError> RefuseIfStrict(const json::Object& body, std::span<const Warning> warnings);

// Reading after CheckFields passed; a wrong type is then impossible.
int64_t IntegerOr(const json::Object& body, std::string_view name, int64_t fallback);
double NumberOr(const json::Object& body, std::string_view name, double fallback);
bool BoolOr(const json::Object& body, std::string_view name, bool fallback);
/// A whole number as JSON writers spell it (5, 5.0); false for all else.
bool AsInteger(const json::Value& value, int64_t* number);

}  // namespace tessera::server::openai
