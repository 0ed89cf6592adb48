// SPDX-License-Identifier: Apache-2.0
#include "gateway/spec/field_error.h"

#include "base/utf8.h"

namespace tessera::gateway {

std::string ErrorBody(const ApiError& error) {
  if (error.fields.empty())
    return json::Serialize(json::Object{{"detail", EscapeNonUtf8(error.text)}});
  json::Array list;
  for (const FieldError& field : error.fields) {
    json::Array loc;
    for (const std::string& step : field.loc) loc.push_back(json::Value(step));
    list.push_back(json::Object{
        {"type", field.type}, {"loc", std::move(loc)}, {"msg", field.msg}, {"input", field.input}});
  }
  return json::Serialize(json::Object{{"detail", std::move(list)}});
}

}  // namespace tessera::gateway
