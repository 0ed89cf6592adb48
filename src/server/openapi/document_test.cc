// SPDX-License-Identifier: Apache-2.0
#include "server/openapi/document.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "server/openapi/operations.h"
#include "server/service.h"
#include "support/fake_service.h"

namespace tessera::server::openapi {
namespace {

TEST(OpenApi, EveryRouteIsDescribedAndNothingElse) {
  ServedModel model = testing::FakeServedModel();
  text::SpecialTokens specials(*model.tokenizer);
  const Context context{.model = std::move(model), .specials = std::move(specials), .options = {}};
  std::set<std::pair<std::string, std::string>> routes, described;
  for (const net::Router::Route& route : MakeRouter(&context).routes())
    routes.emplace(route.method, route.pattern);
  for (const Operation& operation : Operations())
    described.emplace(operation.method, operation.pattern);
  EXPECT_EQ(described, routes);
  EXPECT_EQ(described.size(), Operations().size()) << "each once";
}

void CollectReferences(const json::Value& value, std::set<std::string>* references) {
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
  std::set<std::string> references, schemas;
  CollectReferences(document, &references);
  for (const auto& [name, schema] : document.at("components").at("schemas").as_object())
    schemas.insert("#/components/schemas/" + std::string(name));
  EXPECT_EQ(references, schemas) << "none missing, none unused";
}

TEST(OpenApi, RequestBodiesAreTheTablesThatValidate) {
  const json::Object document = MakeDocument();
  for (const Operation& operation : Operations()) {
    if (operation.fields == nullptr) continue;
    std::string path(operation.pattern), method = operation.method == "PUT" ? "put" : "post";
    const json::Object& schema = document.at("paths")
                                     .at(path)
                                     .at(method)
                                     .at("requestBody")
                                     .at("content")
                                     .at("application/json")
                                     .at("schema")
                                     .as_object();
    std::set<std::string> wanted, found;
    for (const openai::Field& field : operation.fields())
      if ((field.apis & operation.api) != 0 && field.use != openai::Use::kRefused)
        wanted.emplace(field.name);
    for (const auto& [name, property] : schema.at("properties").as_object()) {
      found.emplace(name);
      EXPECT_FALSE(property.at("description").as_string().empty()) << std::string_view(name);
    }
    EXPECT_EQ(found, wanted) << path;
  }
  const json::Object& top_p = document.at("paths")
                                  .at("/v1/responses")
                                  .at("post")
                                  .at("requestBody")
                                  .at("content")
                                  .at("application/json")
                                  .at("schema")
                                  .at("properties")
                                  .at("top_p")
                                  .as_object();
  EXPECT_EQ(json::Serialize(top_p.at("type")), R"(["number","null"])");
  EXPECT_EQ(top_p.at("maximum").as_int64(), 1);
}

TEST(OpenApi, IsServedToAnyone) {
  testing::FakeService server(testing::FakeService::Says("x"),
                              {.access = {.api_keys = {"secret"}}});
  const net::Response response = server.Call("GET", "/openapi.json");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, json::Serialize(MakeDocument()));
}

}  // namespace
}  // namespace tessera::server::openapi
