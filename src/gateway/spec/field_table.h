// SPDX-License-Identifier: Apache-2.0
//
// The fields of an endpoint as one table: type, range, effect, meaning and whether an update may
// name them. Validation, its errors, warnings, the OpenAPI document and the reference page come
// from it. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "gateway/spec/field_error.h"

namespace tessera::gateway {

enum class FieldKind : uint8_t {
  kText,
  kInteger,
  kNumber,
  kBool,
  kObject,
  kTextList,
  kEnum,      // A text of `choices`.
  kEnumList,  // A list of such texts.
  kQuantity,  // Text or number: resources.h.
  kUrl,       // http:// or https://
  kAny,
};

enum class FieldUse : uint8_t {
  kRequired,  // By create.
  kOptional,
  kFixed,   // As kOptional, but an update may not change it.
  kEngine,  // An option of the inference server, kept in EndpointSpec::engine.
};

/// What comes of a value other than that which an absent field stands for.
enum class FieldEffect : uint8_t {
  kGateway,  // The gateway does it.
  kWorker,   // Workers are started with it.
  kNone,     // Nothing: the record has a warning that says `unmet`.
};

struct Field {
  std::string_view name;
  FieldKind kind;
  FieldUse use;
  double low;                // Of numbers, inclusive; of texts and lists: least length.
  double high;               // Both 0: any number; any text up to kTextBytesMax.
  std::string_view choices;  // "a|b|c" of the enum kinds.
  std::string_view meaning;
  FieldEffect effect = FieldEffect::kGateway;
  std::string_view unmet{};  // Why there is no effect; may be empty.
};

std::span<const Field> EndpointFields();
/// Null for a name that the table does not have.
const Field* FindField(std::string_view name);

/// "int", "str", "bool", ...: for errors and the reference page.
std::string_view KindWord(FieldKind kind);
std::vector<std::string_view> Choices(const Field& field);

/// Appends what is wrong with `value`, which is not null. `loc` names it.
void CheckField(const Field& field, const json::Value& value, std::vector<FieldError>* errors);

}  // namespace tessera::gateway
