// SPDX-License-Identifier: Apache-2.0
#include "hub/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::hub {
namespace {

const std::vector<std::string> kNames = {"HuggingFaceTB/SmolLM2-135M-Instruct",
                                         "HuggingFaceTB/SmolLM2-360M-Instruct", "org/tiny"};

TEST(Nearest, FindsWhatWasMeant) {
  const auto of = [](std::string_view wanted) {
    return NearestName(wanted, kNames).value_or("nothing");
  };
  EXPECT_EQ(of("huggingfacetb/smollm2-135m-instruct"), kNames[0]) << "case";
  EXPECT_EQ(of("HuggingFaceTB/SmolLM2-360M-Instuct"), kNames[1]) << "a letter";
  EXPECT_EQ(of("someone/SmolLM2-135M-Instruct"), kNames[0]) << "another organisation";
  EXPECT_EQ(of("SmolLM2-360M-Instruct"), kNames[1]) << "none";
  EXPECT_EQ(of("HuggingFaceTB/SmolLM2-135M"), kNames[0]) << "the beginning";
  EXPECT_EQ(of("org/tinyy"), "org/tiny");
}

TEST(Nearest, NamesNothingFarAway) {
  for (const std::string_view wanted : {"meta-llama/Llama-3.1-8B", "org/other", "org/toy", "x", ""})
    EXPECT_FALSE(NearestName(wanted, kNames)) << wanted;
  EXPECT_FALSE(NearestName("org/tiny", kNames)) << "it is there itself: nothing to mean instead";
  EXPECT_FALSE(NearestName(std::string(5000, 'a'), kNames));
  EXPECT_FALSE(NearestInCache("org/tiny", "/nonexistent"));
}

}  // namespace
}  // namespace tessera::hub
