// SPDX-License-Identifier: Apache-2.0
#include "gateway/openapi/document.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "gateway/api/completion_v1.h"
#include "gateway/limits.h"
#include "gateway/openapi/components.h"
#include "gateway/openapi/field_reference.h"
#include "gateway/openapi/operations.h"
#include "gateway/spec/field_table.h"
#include "net/openapi.h"

namespace tessera::gateway::openapi {
namespace {

using net::openapi::Bound;
using net::openapi::Content;
using net::openapi::MethodKey;
using net::openapi::Parsed;
using net::openapi::PathItem;
using net::openapi::Reference;

json::Array ChoicesOf(const Field& field) {
  json::Array choices;
  for (const std::string_view choice : Choices(field)) choices.emplace_back(choice);
  return choices;
}

/// Bytes of UTF-8 are at least as many as characters, so no text that the schema refuses is taken.
void SetTextBounds(const Field& field, json::Object* schema) {
  if (field.low > 0) (*schema)["minLength"] = Bound(field.low);
  (*schema)["maxLength"] = field.high == 0 ? json::Value(kTextBytesMax) : Bound(field.high);
}

/// The type, without null.
json::Object TypeSchema(const Field& field) {
  json::Object schema;
  switch (field.kind) {
    case FieldKind::kText:
    case FieldKind::kUrl:
      schema["type"] = "string";
      SetTextBounds(field, &schema);
      if (field.kind == FieldKind::kUrl) schema["format"] = "uri";
      break;
    case FieldKind::kInteger:
    case FieldKind::kNumber:
      schema["type"] = field.kind == FieldKind::kInteger ? "integer" : "number";
      if (field.low == 0 && field.high == 0) break;
      schema["minimum"] = Bound(field.low);
      schema["maximum"] = Bound(field.high);
      break;
    case FieldKind::kBool:
      schema["type"] = "boolean";
      break;
    case FieldKind::kObject:
      schema["type"] = "object";
      if (field.high > 0) schema["maxProperties"] = Bound(field.high);
      break;
    case FieldKind::kTextList:
      schema = {{"type", "array"}, {"items", json::Object{{"type", "string"}}}};
      break;
    case FieldKind::kEnum:
      schema["enum"] = ChoicesOf(field);
      break;
    case FieldKind::kEnumList:
      schema = {{"type", "array"}, {"items", json::Object{{"enum", ChoicesOf(field)}}}};
      break;
    case FieldKind::kQuantity:
      schema["type"] = json::Array{"string", "number"};
      schema["examples"] = json::Array{2, "500m", "40Gi"};
      break;
    case FieldKind::kAny:
      break;
  }
  return schema;
}

/// Null means absent, and so is taken wherever a field may be absent.
json::Object WithNull(json::Object schema) {
  if (json::Value* choices = schema.if_contains("enum")) choices->get_array().push_back(nullptr);
  json::Value* type = schema.if_contains("type");
  if (type == nullptr) return schema;
  json::Array types = type->is_array() ? type->get_array() : json::Array{*type};
  types.push_back("null");
  *type = std::move(types);
  return schema;
}

json::Object FieldSchema(const Field& field, bool is_required) {
  json::Object schema = TypeSchema(field);
  if (!is_required) schema = WithNull(std::move(schema));
  std::string text(field.meaning);
  if (field.effect == FieldEffect::kNone) text += " " + EffectText(field);
  schema["description"] = text;
  return schema;
}

json::Object FieldsSchema(std::span<const Field> fields, bool is_update) {
  json::Object properties;
  json::Array required;
  for (const Field& field : fields) {
    // Names may be said again in an update, if they stay what they are.
    const bool is_required =
        !is_update && (field.use == FieldUse::kRequired || field.name == "name");
    properties[field.name] = FieldSchema(field, is_required);
    if (is_required) required.emplace_back(field.name);
  }
  json::Object schema{{"type", "object"}};
  if (!required.empty()) schema["required"] = std::move(required);
  if (is_update)
    properties["clear"] = Parsed(
        R"({"type":["array","null"],"items":{"enum":["quantize","checkpoint_path",)"
        R"("chat_template_override","default_callback_url","default_callback_auth",)"
        R"("billing_tags"]},"description":"Fields to put back to what absent ones mean; null )"
        R"(keeps a field."})");
  schema["properties"] = std::move(properties);
  return schema;
}

json::Object BodySchema(Body body) {
  switch (body) {
    case Body::kCreate:
      return FieldsSchema(EndpointFields(), false);
    case Body::kUpdate:
      return FieldsSchema(EndpointFields(), true);
    case Body::kCompletion:
      return FieldsSchema(CompletionFields(), false);
    case Body::kOpenAi:
      return Parsed(R"({"type":"object","required":["model"],"properties":{"model":{
        "type":"string","minLength":1,"description":"The endpoint's name."}}})")
          .get_object();
    case Body::kForm:
      return Parsed(R"({"type":"object","required":["file"],"properties":{
        "file":{"type":"string","format":"binary"},"purpose":{"type":"string"}}})")
          .get_object();
    case Body::kObject:
      return {{"type", "object"}};
    case Body::kNone:
      break;
  }
  return {};
}

/// One event: its data is JSON text of the component.
json::Object EventSchema(std::string_view component) {
  json::Object data{{"type", "string"}, {"contentMediaType", "application/json"}};
  data["contentSchema"] = Reference(component);
  json::Object properties;
  properties["data"] = std::move(data);
  json::Object schema{{"type", "object"}};
  schema["properties"] = std::move(properties);
  return schema;
}

json::Object AnswerOf(const Operation& operation) {
  json::Object content;
  if (operation.answer == "text/html") {
    content = Content("text/html", {{"type", "string"}});
  } else if (operation.answer == "bytes") {
    content = Content("application/octet-stream", {{"type", "string"}, {"format", "binary"}});
  } else if (!operation.answer.empty()) {
    content = Content("application/json", Reference(operation.answer));
  } else if (operation.event.empty()) {
    content = Content("application/json", {{"type", "object"}});
  }
  if (operation.body == Body::kOpenAi)
    content["text/event-stream"] = json::Object{{"schema", json::Object{{"type", "object"}}}};
  if (!operation.event.empty())
    content["text/event-stream"] = json::Object{{"schema", EventSchema(operation.event)}};
  return {{"description", "The answer."}, {"content", std::move(content)}};
}

const Parameter& ParameterOf(std::string_view key) {
  const auto all = Parameters();
  const auto found = std::ranges::find(all, key, &Parameter::key);
  TESSERA_CHECK(found != all.end());
  return *found;
}

/// "/a/{file...}" -> "/a/{file}".
std::string PathOf(std::string_view pattern) {
  std::string path(pattern);
  if (const size_t dots = path.find("..."); dots != std::string::npos) path.erase(dots, 3);
  return path;
}

json::Array ParametersOf(const Operation& operation) {
  json::Array list;
  for (const std::string_view name : {"name", "id", "token", "file"}) {
    if (PathOf(operation.pattern).find("{" + std::string(name) + "}") == std::string::npos)
      continue;
    json::Object parameter{{"name", name}, {"in", "path"}, {"required", true}};
    parameter["schema"] = json::Object{{"type", "string"}, {"minLength", 1}};
    list.push_back(std::move(parameter));
  }
  for (std::string_view rest = operation.query; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::string_view key = rest.substr(0, end);
    const bool is_required = key.ends_with('*');
    if (is_required) key.remove_suffix(1);
    const Parameter& known = ParameterOf(key);
    json::Object parameter{{"name", known.name}, {"in", "query"}, {"required", is_required}};
    parameter["schema"] = Parsed(known.schema);
    parameter["description"] = known.meaning;
    list.push_back(std::move(parameter));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return list;
}

json::Object OperationObject(const Operation& operation) {
  json::Object failure{{"description", "What went wrong."}};
  failure["content"] = Content("application/json", Reference("Error"));
  json::Object responses;
  responses["200"] = AnswerOf(operation);
  responses["default"] = std::move(failure);
  json::Object object{{"summary", operation.summary}};
  if (operation.body != Body::kNone) {
    json::Object body{{"required", true}};
    const bool is_form = operation.body == Body::kForm;
    body["content"] =
        Content(is_form ? "multipart/form-data" : "application/json", BodySchema(operation.body));
    object["requestBody"] = std::move(body);
  }
  if (json::Array parameters = ParametersOf(operation); !parameters.empty())
    object["parameters"] = std::move(parameters);
  if (operation.needs_user) {
    const json::Object basic{{"basic", json::Array()}}, bearer{{"bearer", json::Array()}};
    object["security"] = json::Array{basic, bearer};
  }
  object["responses"] = std::move(responses);
  return object;
}

json::Object ComponentsObject() {
  json::Object schemas;
  for (const Component& component : Components())
    schemas[component.name] = Parsed(component.schema);
  json::Object components;
  components["schemas"] = std::move(schemas);
  components["securitySchemes"] =
      Parsed(R"({"basic":{"type":"http","scheme":"basic","description":)"
             R"("The user name is the key; the password says nothing."},)"
             R"("bearer":{"type":"http","scheme":"bearer"}})");
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
  document["info"] = json::Object{{"title", "Tessera gateway"}, {"version", TESSERA_VERSION}};
  document["paths"] = std::move(paths);
  document["components"] = ComponentsObject();
  return document;
}

void AddDocumentRoutes(net::Router* router) {
  router->Add("GET", "/openapi.json",
              [body = json::Serialize(MakeDocument())](const net::Request&,
                                                       const net::ResponseWriter& writer) {
                (void)writer.Send(net::Response::Json(200, body));
              });
  router->Add("GET", "/docs",
              [page = ReferencePage()](const net::Request&, const net::ResponseWriter& writer) {
                net::Response response;
                response.status = 200;
                response.headers.Set("Content-Type", "text/html; charset=utf-8");
                response.body = page;
                (void)writer.Send(std::move(response));
              });
}

}  // namespace tessera::gateway::openapi
