// SPDX-License-Identifier: Apache-2.0
//
// What compiling the schemas of one request may cost.
#include "server/openai/tool_constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/openai/tool_fields.h"
#include "support/fake_service.h"

namespace tessera::server::openai {
namespace {

json::Object Body(bool is_strict) {
  const std::string function =
      R"("parameters":{"type":"object","properties":{"a":{"type":"integer"}}},"strict":)" +
      std::string(is_strict ? "true" : "false");
  return json::Parse(R"({"tools":[{"type":"function","function":{"name":"f",)" + function +
                         R"(}},{"type":"function","function":{"name":"g",)" + function + "}}]}",
                     {}, "body")
      .value()
      .as_object();
}

ApiResult<void> Constrain(const json::Object& body, Duration time, GenerationFields* fields) {
  static const ServedModel model = testing::FakeServedModel();
  const auto tools = ReadToolFields(body, &fields->warnings).value();
  fields->message.format.tool_syntax = model.chat_format.tool_syntax;
  fields->message.format.tools = tools.Specs();
  return ConstrainTools(body, tools, model, fields, time);
}

TEST(ToolConstraint, SchemasThatTakeTooLongTogetherAreNotCompiled) {
  GenerationFields in_time, late, strict;
  EXPECT_TRUE(Constrain(Body(false), kSchemasTimeMax, &in_time).has_value());
  EXPECT_TRUE(in_time.warnings.empty());
  // As for schemas that cannot be enforced: a warning each, or an error where it must be.
  EXPECT_TRUE(Constrain(Body(false), Duration(-1), &late).has_value());
  ASSERT_EQ(late.warnings.size(), 2u);
  EXPECT_EQ(late.warnings[1].code, "unenforced_schema");
  EXPECT_EQ(late.warnings[1].param, "tools[1].function.parameters");
  const auto refused = Constrain(Body(true), Duration(-1), &strict);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("took too long"));
}

}  // namespace
}  // namespace tessera::server::openai
