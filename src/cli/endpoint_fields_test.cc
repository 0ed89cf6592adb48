// SPDX-License-Identifier: Apache-2.0
#include "cli/endpoint_fields.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "gateway/spec/field_table.h"

namespace tessera::cli {
namespace {

std::string Parsed(std::string_view name, std::string_view text) {
  const auto value = ParseFieldText(name, text);
  return value.has_value() ? json::Serialize(*value) : "refused: " + value.error().message();
}

TEST(ParseFieldText, GivesTheKindOfTheField) {
  EXPECT_EQ(Parsed("min_workers", "3"), "3");
  EXPECT_EQ(Parsed("prewarm", "false"), "false");
  EXPECT_EQ(Parsed("quantize", "awq"), "\"awq\"");
  EXPECT_EQ(Parsed("inference_framework_image_tag", "3"), "\"3\"");
  EXPECT_EQ(Parsed("cpus", "500m"), "\"500m\"");
  EXPECT_EQ(Parsed("labels", R"({"team": "red"})"), R"({"team":"red"})");
  EXPECT_EQ(Parsed("post_inference_hooks", "callback,logging"), R"(["callback","logging"])");
  EXPECT_EQ(Parsed("post_inference_hooks", R"(["callback"])"), R"(["callback"])");
  EXPECT_EQ(Parsed("gpu_memory_utilization", "0.5"), "0.5");
}

TEST(ParseFieldText, SaysWhatWasExpected) {
  EXPECT_EQ(Parsed("min_workers", "many"), "refused: Input should be a valid integer");
  EXPECT_EQ(Parsed("min_workers", "-1"), "refused: Input should be greater than or equal to 0");
  EXPECT_EQ(Parsed("labels", "team=red"), "refused: Input should be a valid dictionary");
  EXPECT_EQ(Parsed("prewarm", "yes"), "refused: Input should be a valid boolean");
  EXPECT_NE(Parsed("quantize", "q4").find("'awq'"), std::string::npos);
  EXPECT_TRUE(Parsed("max_workers", "null").starts_with("refused: null says nothing"));
}

TEST(AddFieldFlags, EveryFieldHasAFlag) {
  for (const bool is_update : {false, true}) {
    CLI::App app;
    json::Object body;
    std::string file;
    AddFieldFlags(&app, &body, &file, is_update);
    for (const gateway::Field& field : gateway::EndpointFields()) {
      const bool is_there = app.get_option_no_throw(FlagOfField(field.name)) != nullptr;
      const bool is_wanted =
          field.name != "name" && !(is_update && field.use == gateway::FieldUse::kFixed);
      EXPECT_EQ(is_there, is_wanted) << field.name;
    }
  }
}

TEST(AddFieldFlags, FlagsBecomeTheBody) {
  CLI::App app;
  json::Object body;
  std::string file;
  AddFieldFlags(&app, &body, &file, false);
  std::vector<std::string> arguments = {"--model", "smol", "--max-workers=3", "--prewarm", "false"};
  std::ranges::reverse(arguments);
  app.parse(arguments);
  EXPECT_EQ(json::Serialize(body), R"({"model_name":"smol","max_workers":3,"prewarm":false})");
  EXPECT_THROW(app.parse(std::vector<std::string>{"--max-workers=no"}), CLI::ValidationError);
}

}  // namespace
}  // namespace tessera::cli
