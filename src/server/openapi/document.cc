// SPDX-License-Identifier: Apache-2.0
#include "server/openapi/document.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "net/openapi.h"
#include "server/openapi/components.h"
#include "server/openapi/operations.h"

namespace tessera::server::openapi {
namespace {

using net::openapi::Bound;
using net::openapi::Content;
using net::openapi::MethodKey;
using net::openapi::Parsed;
using net::openapi::PathItem;
using net::openapi::Reference;
using openai::Field;
using openai::Kind;
using openai::Use;

json::Array Types(Kind kind) {
  // Null means absent in every dialect.
  switch (kind) {
    case Kind::kString:
      return {"string", "null"};
    case Kind::kBool:
      return {"boolean", "null"};
    case Kind::kInteger:
      return {"integer", "null"};
    case Kind::kNumber:
      return {"number", "null"};
    case Kind::kObject:
      return {"object", "null"};
    case Kind::kArray:
      return {"array", "null"};
    case Kind::kStringOrArray:
      return {"string", "array", "null"};
    case Kind::kStringOrObject:
      return {"string", "object", "null"};
    case Kind::kAny:
      return {};
  }
  return {};
}

json::Object SchemaOf(const Field& field, const Operation& operation) {
  json::Object schema;
  const auto details = FieldDetails();
  const auto detail = std::ranges::find_if(details, [&](const FieldDetail& entry) {
    return entry.name == field.name &&
           (entry.fields == nullptr || entry.fields == operation.fields);
  });
  if (detail != details.end() && field.kind != Kind::kBool) {
    schema = Parsed(detail->schema).as_object();
  } else if (json::Array types = Types(field.kind); !types.empty()) {
    schema["type"] = std::move(types);
  }
  if (field.low != 0 || field.high != 0) {
    schema["minimum"] = Bound(field.low);
    schema["maximum"] = Bound(field.high);
  }
  schema["description"] = field.meaning;
  return schema;
}

/// Refused fields are no part of the API; others that it does not know are answered by warnings.
json::Object BodySchema(const Operation& operation) {
  json::Object properties;
  for (const Field& field : operation.fields())
    if ((field.apis & operation.api) != 0 && field.use != Use::kRefused)
      properties[field.name] = SchemaOf(field, operation);
  json::Object schema{{"type", "object"}};
  json::Array required;
  for (std::string_view rest = operation.required; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view name = rest.substr(0, end);
    // Null is as good as missing where a field must be there.
    json::Object& property = properties.at(name).as_object();
    if (json::Value* type = property.if_contains("type"); type != nullptr && type->is_array()) {
      json::Array& types = type->get_array();
      types.erase(std::ranges::find(types, json::Value("null")));
    }
    required.emplace_back(name);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!required.empty()) schema["required"] = std::move(required);
  schema["properties"] = std::move(properties);
  return schema;
}

/// One event: its data is JSON text of the component, but for the last one of some dialects.
json::Object EventSchema(std::string_view component) {
  json::Object data{{"type", "string"}, {"contentMediaType", "application/json"}};
  data["contentSchema"] = Reference(component);
  json::Object properties;
  properties["event"] = json::Object{{"type", "string"}};
  properties["id"] = json::Object{{"type", "string"}};
  properties["data"] = std::move(data);
  json::Object schema{{"type", "object"}};
  schema["required"] = json::Array{"data"};
  schema["properties"] = std::move(properties);
  return schema;
}

json::Object AnswerOf(const Operation& operation) {
  json::Object answer{{"description", operation.event.empty()
                                          ? "The answer."
                                          : "The answer; with stream, events."}};
  json::Object content;
  if (operation.answer == "text") {
    content = Content("text/plain", {{"type", "string"}});
  } else if (!operation.answer.empty()) {
    content = Content("application/json", Reference(operation.answer));
  }
  if (!operation.event.empty()) {
    const json::Object events = Content("text/event-stream", EventSchema(operation.event));
    content["text/event-stream"] = events.at("text/event-stream");
  }
  if (!content.empty()) answer["content"] = std::move(content);
  return answer;
}

json::Array ParametersOf(const Operation& operation) {
  json::Array parameters;
  if (operation.pattern.find("{id") != operation.pattern.npos) {
    json::Object id{{"name", "id"}, {"in", "path"}, {"required", true}};
    if (operation.pattern.find("{id...}") != operation.pattern.npos)
      id["description"] = "May have slashes, as they are or escaped.";
    id["schema"] = json::Object{{"type", "string"}, {"minLength", 1}};
    parameters.push_back(std::move(id));
  }
  if (operation.pattern.ends_with("/events")) {
    json::Object last{{"name", "Last-Event-ID"}, {"in", "header"}};
    last["schema"] = json::Object{{"type", "string"}};
    parameters.push_back(std::move(last));
  }
  return parameters;
}

json::Object OperationObject(const Operation& operation) {
  json::Object failure{{"description", "What went wrong."}};
  failure["content"] = Content("application/json", Reference(operation.error));
  json::Object responses;
  responses["200"] = AnswerOf(operation);
  responses["default"] = std::move(failure);
  json::Object object{{"summary", operation.summary}};
  if (operation.fields != nullptr) {
    json::Object body{{"required", true}};
    body["content"] = Content("application/json", BodySchema(operation));
    object["requestBody"] = std::move(body);
  }
  if (json::Array parameters = ParametersOf(operation); !parameters.empty())
    object["parameters"] = std::move(parameters);
  if (operation.needs_key) {
    const json::Object bearer{{"bearer", json::Array()}}, key{{"key", json::Array()}}, none;
    object["security"] = json::Array{bearer, key, none};
  }
  object["responses"] = std::move(responses);
  return object;
}

/// "/a/{id...}" -> "/a/{id}".
std::string PathOf(std::string_view pattern) {
  std::string path(pattern);
  if (const size_t dots = path.find("..."); dots != path.npos) path.erase(dots, 3);
  return path;
}

json::Object Components() {
  json::Object schemas;
  for (const auto& table : {CommonComponents(), OpenAiComponents(), MessagesComponents(),
                            ResponsesComponents(), AdminComponents()})
    for (const Component& component : table) schemas[component.name] = Parsed(component.schema);
  json::Object components;
  components["schemas"] = std::move(schemas);
  components["securitySchemes"] =
      Parsed(R"({"bearer":{"type":"http","scheme":"bearer"},)"
             R"("key":{"type":"apiKey","in":"header","name":"X-Api-Key"}})");
  return components;
}

}  // namespace

json::Object MakeDocument() {
  json::Object paths;
  for (const Operation& operation : Operations()) {
    PathItem(PathOf(operation.pattern), &paths)[MethodKey(operation.method)] =
        OperationObject(operation);
  }
  json::Object document{{"openapi", "3.1.0"}};
  document["info"] = json::Object{{"title", "Tessera"}, {"version", TESSERA_VERSION}};
  document["paths"] = std::move(paths);
  document["components"] = Components();
  return document;
}

net::Response HandleOpenApi() {
  static const std::string body = json::Serialize(MakeDocument());
  return net::Response::Json(200, body);
}

}  // namespace tessera::server::openapi
