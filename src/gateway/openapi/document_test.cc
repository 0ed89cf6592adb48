// SPDX-License-Identifier: Apache-2.0
#include "gateway/openapi/document.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "gateway/api/completion_v1.h"
#include "gateway/api/endpoint_json.h"
#include "gateway/files/file_json.h"
#include "gateway/gateway.h"
#include "gateway/openapi/components.h"
#include "gateway/openapi/field_reference.h"
#include "gateway/openapi/operations.h"
#include "gateway/spec/field_table.h"
#include "support/fixtures.h"
#include "support/golden.h"

namespace tessera::gateway::openapi {
namespace {

using Names = std::set<std::string>;

Names KeysOf(const json::Object& object) {
  Names names;
  for (const auto& member : object) names.emplace(member.key());
  return names;
}

TEST(OpenApi, EveryRouteIsDescribedAndNothingElse) {
  const testing::TempDir dir;
  GatewayOptions options;
  options.http.port = 0;
  options.state_dir = dir.path();
  options.program = "/bin/true";
  const auto gateway = Gateway::Start(std::move(options), Clock::Real());
  ASSERT_TRUE(gateway.has_value()) << gateway.error().ToString();
  std::set<std::pair<std::string, std::string>> routes, described;
  for (const net::Router::Route& route : (*gateway)->routes())
    routes.emplace(route.method, route.pattern);
  for (const Operation& operation : Operations())
    described.emplace(operation.method, operation.pattern);
  EXPECT_EQ(described, routes) << "rows of openapi/operations.cc are the table of routes";
  EXPECT_EQ(described.size(), Operations().size()) << "each once";
}

void CollectReferences(const json::Value& value, Names* references) {
  if (const json::Object* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      if (key == "$ref") references->emplace(member.as_string());
      CollectReferences(member, references);
    }
  } else if (const json::Array* array = value.if_array()) {
    for (const json::Value& entry : *array) CollectReferences(entry, references);
  }
}

TEST(OpenApi, ReferencesAndSchemasMeet) {
  const json::Object document = MakeDocument();
  Names references, schemas;
  CollectReferences(document, &references);
  for (const auto& [name, schema] : document.at("components").at("schemas").as_object())
    schemas.insert("#/components/schemas/" + std::string(name));
  EXPECT_EQ(references, schemas) << "none missing, none unused";
}

const json::Object& BodyOf(const json::Object& document, std::string_view path,
                           std::string_view method) {
  return document.at("paths")
      .at(path)
      .at(method)
      .at("requestBody")
      .at("content")
      .at("application/json")
      .at("schema")
      .as_object();
}

TEST(OpenApi, RequestBodiesAreTheTablesThatValidate) {
  const json::Object document = MakeDocument();
  Names endpoint, completion;
  for (const Field& field : EndpointFields()) endpoint.emplace(field.name);
  for (const Field& field : CompletionFields()) completion.emplace(field.name);
  const json::Object& create = BodyOf(document, "/v1/llm/model-endpoints", "post");
  EXPECT_EQ(KeysOf(create.at("properties").as_object()), endpoint);
  EXPECT_EQ(json::Serialize(create.at("required")),
            R"(["name","model_name","min_workers","max_workers","per_worker"])");
  const json::Object& update = BodyOf(document, "/v1/llm/model-endpoints/{name}", "put");
  endpoint.insert("clear");
  EXPECT_EQ(KeysOf(update.at("properties").as_object()), endpoint);
  EXPECT_FALSE(update.contains("required"));
  const json::Object& sync = BodyOf(document, "/v1/llm/completions-sync", "post");
  EXPECT_EQ(KeysOf(sync.at("properties").as_object()), completion);
  for (const json::Object* body : {&create, &update, &sync})
    for (const auto& [name, property] : body->at("properties").as_object())
      EXPECT_FALSE(property.at("description").as_string().empty()) << std::string_view(name);
  const json::Object& workers = create.at("properties").at("min_workers").as_object();
  EXPECT_EQ(json::Serialize(workers.at("maximum")), "250");
  EXPECT_EQ(json::Serialize(create.at("properties").at("quantize").at("enum")),
            R"(["bitsandbytes","awq",null])");
}

Names PropertiesOf(std::string_view component) {
  for (const Component& known : Components())
    if (known.name == component)
      return KeysOf(json::Parse(known.schema, {}, "schema")->at("properties").as_object());
  ADD_FAILURE() << component;
  return {};
}

// A member that is added to an answer needs its line in openapi/components.cc.
TEST(OpenApi, AnswersHaveTheMembersThatAreDescribed) {
  EndpointView view;
  view.record.spec.resources.cpus = "1";
  view.record.spec.resources.memory = "1Gi";
  const json::Object record = EndpointJson(view, "me");
  EXPECT_EQ(KeysOf(record), PropertiesOf("Endpoint"));
  const json::Object& spec = record.at("spec").as_object();
  EXPECT_EQ(KeysOf(spec), PropertiesOf("EndpointSpec"));
  EXPECT_EQ(KeysOf(spec.at("deployment_state").as_object()), PropertiesOf("DeploymentState"));
  EXPECT_EQ(KeysOf(spec.at("resource_state").as_object()), PropertiesOf("ResourceState"));
  EXPECT_EQ(KeysOf(WorkerJson({})), PropertiesOf("Worker"));
  EXPECT_EQ(KeysOf(EventJson({})), PropertiesOf("Event"));
  EXPECT_EQ(KeysOf(FileJson({})), PropertiesOf("File"));
}

TEST(FieldReference, StandsInTheDocument) {
  testing::ExpectDocumentBlock(FieldReference(), "docs/endpoints.md", "fields");
}

TEST(ReferencePage, NamesEveryFieldAndRoute) {
  const std::string page = ReferencePage();
  for (const Field& field : EndpointFields())
    EXPECT_NE(page.find("<code>" + std::string(field.name) + "</code>"), std::string::npos);
  for (const Operation& operation : Operations())
    EXPECT_NE(page.find("<code>" + std::string(operation.pattern) + "</code>"), std::string::npos);
}

}  // namespace
}  // namespace tessera::gateway::openapi
