// SPDX-License-Identifier: Apache-2.0
#include "gateway/control/worker_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "gateway/spec/field_table.h"
#include "gateway/spec/read_spec.h"
#include "support/fixtures.h"

namespace tessera::gateway {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

EndpointSpec SpecOf(const json::Object& more) {
  json::Object body{{"name", "a"},
                    {"model_name", "org/repo"},
                    {"min_workers", 1},
                    {"max_workers", 1},
                    {"per_worker", 4}};
  for (const auto& member : more) body[member.key()] = member.value();
  const auto asked = ReadCreate(body);
  EXPECT_TRUE(asked.has_value()) << ErrorBody(asked.error());
  return asked.has_value() ? asked->spec : EndpointSpec();
}

std::vector<std::string> ArgumentsOf(const EndpointSpec& spec) {
  static const testing::TempDir dir;  // The path of a template stands in them.
  const auto models = ModelTable::Read({});
  EXPECT_TRUE(models.has_value());
  const auto arguments = WorkerArguments(spec, *models, dir.path());
  EXPECT_TRUE(arguments.has_value()) << arguments.error().ToString();
  return arguments.has_value() ? *arguments : std::vector<std::string>();
}

/// A value of the field that says something: another one than what an absent field means.
json::Value Telling(const Field& field) {
  static const std::map<std::string_view, json::Value> kSpecial = {
      {"model_name", "org/other"},
      {"checkpoint_path", "hf://org/weights"},
      {"enable_prefix_caching", false},
      {"enable_auto_tool_choice", false},
      {"prewarm", false},
      {"enable_startup_metrics", false},
      {"default_callback_auth",
       json::Object{{"kind", "basic"}, {"username", "u"}, {"password", "p"}}},
  };
  if (const auto special = kSpecial.find(field.name); special != kSpecial.end())
    return special->second;
  switch (field.kind) {
    case FieldKind::kText:
      return "x";
    case FieldKind::kInteger:
      return 2;
    case FieldKind::kNumber:
      return 0.5;
    case FieldKind::kBool:
      return true;
    case FieldKind::kObject:
      return json::Object{{"a", "b"}};
    case FieldKind::kTextList:
      return json::Array{"x"};
    case FieldKind::kEnum:
      return json::Value(Choices(field).back());
    case FieldKind::kEnumList:
      return json::Array{json::Value(Choices(field).back())};
    case FieldKind::kQuantity:
      return "2Gi";
    case FieldKind::kUrl:
      return "http://127.0.0.1:1/x";
    case FieldKind::kAny:
      return json::Object{{"image", 1}};
  }
  return {};
}

// What the gateway itself does, and where that is tested.
const std::map<std::string_view, std::string_view> kDoneByTheGateway = {
    {"name", "ReadCreate.NamesMayHaveSixtyThreeBytes"},
    {"source", "there is one; others are refused: ReadCreate.NamesEachFieldThatIsWrong"},
    {"endpoint_type", "ReadCreate.UnknownFieldsAreWarnings"},
    {"min_workers", "Autoscaler.*"},
    {"max_workers", "Autoscaler.*"},
    {"per_worker", "Autoscaler.*"},
    {"labels", "ReadCreate.NamesEachFieldThatIsWrong; reported"},
    {"metadata", "ReadCreate.NamesEachFieldThatIsWrong; reported"},
    {"public_inference", "Controller.*"},
};

TEST(EveryField, HasAnEffectOrAWarning) {
  const EndpointSpec plain = SpecOf({});
  ASSERT_THAT(UnmetWishes(plain), IsEmpty());
  std::set<std::string_view> gateway;
  for (const Field& field : EndpointFields()) {
    if (field.effect == FieldEffect::kGateway) {
      gateway.insert(field.name);
      continue;
    }
    json::Object change{{field.name, Telling(field)}};
    if (field.name == "gpus" || field.name == "distributed_executor_backend")
      change["num_shards"] = 2;
    const EndpointSpec asked = SpecOf(change);
    const std::vector<std::string> wishes = UnmetWishes(asked);
    const std::string begin = std::string(field.name) + ": ";
    if (field.effect == FieldEffect::kNone) {
      EXPECT_THAT(wishes, Contains(StartsWith(begin))) << field.name;
      EXPECT_EQ(ArgumentsOf(asked), ArgumentsOf(plain)) << field.name << " has an effect";
    } else {
      EXPECT_THAT(wishes, IsEmpty()) << field.name;
      EXPECT_NE(ArgumentsOf(asked), ArgumentsOf(plain)) << field.name << " has no effect";
    }
  }
  std::set<std::string_view> known;
  for (const auto& [name, test] : kDoneByTheGateway) known.insert(name);
  EXPECT_EQ(gateway, known);
}

TEST(UnmetWishes, WhatAsksForNothingIsNoWish) {
  EXPECT_THAT(UnmetWishes(SpecOf({{"gpus", 0},
                                  {"nodes_per_worker", 1},
                                  {"optimize_costs", false},
                                  {"post_inference_hooks", json::Array()},
                                  {"trust_remote_code", false},
                                  {"disable_log_requests", false},
                                  {"enable_auto_tool_choice", true},
                                  {"pipeline_parallel_size", 1},
                                  {"num_shards", 1},
                                  {"inference_framework", "vllm"},
                                  {"prewarm", true},
                                  {"high_priority", false}})),
              IsEmpty());
}

TEST(UnmetWishes, ShardsThatAreProcessesAreNone) {
  EXPECT_THAT(UnmetWishes(SpecOf({{"num_shards", 2}, {"distributed_executor_backend", "mp"}})),
              IsEmpty());
  EXPECT_THAT(UnmetWishes(SpecOf({{"distributed_executor_backend", "mp"}})),
              Contains(StartsWith("distributed_executor_backend: ")));
}

TEST(UnmetWishes, SaysWhy) {
  EXPECT_THAT(UnmetWishes(SpecOf({{"trust_remote_code", true}})),
              Contains(HasSubstr("code of repositories is never run")));
}

}  // namespace
}  // namespace tessera::gateway
