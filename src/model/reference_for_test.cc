// SPDX-License-Identifier: Apache-2.0
#include "model/reference_for_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/fixtures.h"

namespace tessera::testing {
namespace {

double Number(const json::Value& value) {
  return value.to_number<double>();
}

std::vector<int32_t> Ids(const json::Value& value) {
  std::vector<int32_t> ids;
  for (const json::Value& id : value.as_array()) ids.push_back(id.to_number<int32_t>());
  return ids;
}

ReferenceRow ReadRow(const json::Object& object) {
  ReferenceRow row;
  for (const json::Value& pair : object.at("top").as_array()) {
    row.top.emplace_back(pair.as_array()[0].to_number<int32_t>(), Number(pair.as_array()[1]));
  }
  row.sum = Number(object.at("sum"));
  row.std = Number(object.at("std"));
  row.min = Number(object.at("min"));
  row.max = Number(object.at("max"));
  row.logsumexp = Number(object.at("logsumexp"));
  return row;
}

ReferenceCase ReadCase(const json::Object& object) {
  ReferenceCase c;
  c.id = object.at("id").as_string();
  c.tokens = Ids(object.at("ids"));
  c.argmax = Ids(object.at("argmax"));
  c.last = ReadRow(object.at("last").as_object());
  if (const json::Value* rows = json::Find(object, "positions")) {
    for (const json::Value& row : rows->as_array()) c.positions.push_back(ReadRow(row.as_object()));
  }
  if (const json::Value* logprobs = json::Find(object, "prompt_logprobs")) {
    for (const json::Value& p : logprobs->as_array()) c.prompt_logprobs.push_back(Number(p));
    c.mean_nll = Number(object.at("mean_nll"));
  }
  for (const json::Value& step : object.at("greedy").as_array()) {
    const json::Object& s = step.as_object();
    c.greedy.push_back(
        {s.at("id").to_number<int32_t>(), Number(s.at("logit")), Number(s.at("margin"))});
  }
  return c;
}

double LogSumExp(std::span<const double> row) {
  const double max = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const double value : row) sum += std::exp(value - max);
  return max + std::log(sum);
}

}  // namespace

std::vector<ReferenceCase> ReadReferenceCases(const std::filesystem::path& path) {
  std::vector<ReferenceCase> cases;
  for (const json::Value& line : ReadJsonLines(path)) cases.push_back(ReadCase(line.as_object()));
  EXPECT_FALSE(cases.empty()) << path;
  return cases;
}

void ExpectRow(std::span<const double> row, const ReferenceRow& expected, double tolerance,
               const std::string& what) {
  ASSERT_FALSE(expected.top.empty()) << what;
  for (const auto& [id, logit] : expected.top) {
    EXPECT_NEAR(row[static_cast<size_t>(id)], logit, tolerance) << what << " token " << id;
  }
  const double n = static_cast<double>(row.size());
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  double squares = 0;
  for (const double value : row) squares += (value - sum / n) * (value - sum / n);
  EXPECT_NEAR(sum / n, expected.sum / n, tolerance) << what;
  EXPECT_NEAR(std::sqrt(squares / n), expected.std, tolerance) << what;
  EXPECT_NEAR(*std::min_element(row.begin(), row.end()), expected.min, tolerance) << what;
  EXPECT_NEAR(*std::max_element(row.begin(), row.end()), expected.max, tolerance) << what;
  EXPECT_NEAR(LogSumExp(row), expected.logsumexp, tolerance) << what;
}

double LogProb(std::span<const double> row, int32_t id) {
  return row[static_cast<size_t>(id)] - LogSumExp(row);
}

}  // namespace tessera::testing
