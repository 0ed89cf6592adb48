// SPDX-License-Identifier: Apache-2.0
//
// Expected texts were printed by Python 3.11's json.dumps and repr.
#include "formats/irpa/python_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace tessera::formats::irpa {
namespace {

TEST(PythonJson, SpellsFloatsAsRepr) {
  const std::pair<double, std::string_view> cases[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {-2.5, "-2.5"},
      {500000.0, "500000.0"},
      {0.01, "0.01"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {9.999999747378752e-06, "9.999999747378752e-06"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1.5e300, "1.5e+300"},
      {123456789012345678.0, "1.2345678901234568e+17"},
      {5e-324, "5e-324"},
      {std::numeric_limits<double>::infinity(), "Infinity"},
      {-std::numeric_limits<double>::infinity(), "-Infinity"},
      {std::numeric_limits<double>::quiet_NaN(), "NaN"},
  };
  for (const auto& [value, text] : cases) EXPECT_EQ(PythonFloat(value), text);
}

TEST(PythonJson, IndentsAndEscapesAsDumps) {
  const json::Object object{{"a", json::Array{1, 2.0, true, nullptr}},
                            {"\u00e9\"\\", "\n\t\x01\x7f \u0120 \U0001f600"},
                            {"empty", json::Object{}},
                            {"none", json::Array{}}};
  EXPECT_EQ(PythonJson(object, 2),
            "{\n  \"a\": [\n    1,\n    2.0,\n    true,\n    null\n  ],\n"
            "  \"\\u00e9\\\"\\\\\": \"\\n\\t\\u0001\\u007f \\u0120 \\ud83d\\ude00\",\n"
            "  \"empty\": {},\n  \"none\": []\n}");
  EXPECT_EQ(PythonJson(json::Array{0, 1}, 0), "[0, 1]");
}

}  // namespace
}  // namespace tessera::formats::irpa
