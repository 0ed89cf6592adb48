// SPDX-License-Identifier: Apache-2.0
//
// LogitRow against plain loops over the whole row: with and without a mask, changes and given
// maxima.
#include "engine/logit_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/random.h"

namespace tessera::engine {
using text::TokenId;

namespace {

constexpr float kFloatMinusInfinity = -std::numeric_limits<float>::infinity();

/// A row of a random case and what it should hold.
struct Case {
  explicit Case(uint64_t seed) {
    Random random(seed);
    const size_t size = 1 + random.Below(300);
    for (size_t i = 0; i < size; ++i)
      logits.push_back(random.Below(9) == 0 ? kFloatMinusInfinity
                                            : std::round(4 * static_cast<float>(random.Normal())));
    logits[random.Below(size)] = 1;  // Something finite.
    expected.assign(logits.begin(), logits.end());
    if (random.Below(2) == 0) {
      allowed.resize((size + 31) / 32);
      for (uint32_t& word : allowed)
        word = random.Below(3) == 0 ? 0u : static_cast<uint32_t>(random());
      for (size_t i = 0; i < size; ++i)
        if (((allowed[i / 32] >> (i % 32)) & 1) == 0) expected[i] = LogitRow::kMinusInfinity;
    }
    for (uint64_t i = random.Below(4) * 5; i > 0; --i) {
      const auto id = static_cast<TokenId>(random.Below(size));
      const double value = random.Below(3) == 0 ? LogitRow::kMinusInfinity : 3 * random.Normal();
      changes.emplace_back(id, value);
      expected[static_cast<size_t>(id)] = value;
    }
  }

  /// The row of this case in `row`, which may have been used before.
  TokenId Fill(LogitRow* row) const {
    EXPECT_TRUE(row->Reset(logits, allowed).ok());
    for (const auto& [id, value] : changes) row->Set(id, value);
    return row->FindBest();
  }
  double max() const { return *std::ranges::max_element(expected); }

  std::vector<float> logits;
  std::vector<uint32_t> allowed;
  std::vector<std::pair<TokenId, double>> changes;
  std::vector<double> expected;
};

void ForManyCases(const std::function<void(const Case&, LogitRow*, TokenId best)>& check) {
  LogitRow row;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Case made(seed);
    const TokenId best = made.Fill(&row);
    check(made, &row, best);
  }
}

TEST(LogitRow, HoldsTheMaskedAndChangedValues) {
  ForManyCases([](const Case& made, LogitRow* row, TokenId best) {
    ASSERT_EQ(row->size(), std::ssize(made.expected));
    for (size_t id = 0; id < made.expected.size(); ++id)
      ASSERT_EQ(row->At(static_cast<TokenId>(id)), made.expected[id]) << id;
    EXPECT_EQ(row->max(), made.max());
    const auto first = std::ranges::find(made.expected, made.max()) - made.expected.begin();
    EXPECT_EQ(best, made.max() == LogitRow::kMinusInfinity ? -1 : first);
  });
}

TEST(LogitRow, CollectsAllThatReachTheBoundAndNoOther) {
  ForManyCases([](const Case& made, LogitRow* row, TokenId best) {
    if (best < 0) return;
    for (const double least : {LogitRow::kMinusInfinity, -2.0, 0.0, made.max()}) {
      std::vector<Candidate> kept;
      row->Collect(least, 0.5, &kept);
      std::vector<TokenId> ids, wanted;
      for (const Candidate& c : kept) {
        ids.push_back(c.id);
        EXPECT_EQ(c.x, (made.expected[static_cast<size_t>(c.id)] - made.max()) * 0.5);
      }
      for (size_t id = 0; id < made.expected.size(); ++id)
        if (made.expected[id] >= least && made.expected[id] != LogitRow::kMinusInfinity)
          wanted.push_back(static_cast<TokenId>(id));
      EXPECT_EQ(ids, wanted);
    }
  });
}

TEST(LogitRow, ABoundOfTheGreatestIsReachedByThatMany) {
  ForManyCases([](const Case& made, LogitRow* row, TokenId best) {
    if (best < 0) return;
    for (const int64_t count : {1, 2, 5, 40}) {
      const double least = row->LeastOf(count);
      EXPECT_GE(std::ranges::count_if(made.expected, [&](double x) { return x >= least; }),
                std::min(count, row->size()));
    }
  });
}

TEST(LogitRow, MassIsTheSumAndIsFoundInIdOrder) {
  ForManyCases([](const Case& made, LogitRow* row, TokenId best) {
    if (best < 0) return;
    for (const double scale : {1e-3, 1.0, 3.0}) {
      double sum = 0;
      for (const double x : made.expected) sum += std::exp((x - made.max()) * scale);
      EXPECT_NEAR(row->Mass(scale), sum, 1e-12 * sum);
      for (const double u : {0.0, 0.1, 0.5, 0.99, 1.0, 2.0}) {
        const TokenId found = row->FindMass(u * sum, scale);
        ASSERT_NE(made.expected[static_cast<size_t>(found)], LogitRow::kMinusInfinity);
        double before = 0;
        for (TokenId id = 0; id < found; ++id)
          before += std::exp((made.expected[static_cast<size_t>(id)] - made.max()) * scale);
        const double with =
            before + std::exp((made.expected[static_cast<size_t>(found)] - made.max()) * scale);
        EXPECT_LE(before, u * sum + 1e-9 * sum);
        if (u < 1) {
          EXPECT_GE(with, u * sum - 1e-9 * sum);
        }
      }
    }
  });
}

TEST(LogitRow, GivenMaximaAreTrusted) {
  const std::vector<float> logits(40, 1.0f);
  const std::vector<float> maxima{1.0f, 1.0f};
  LogitRow row;
  ASSERT_TRUE(row.Reset(Logits(logits, maxima), {}).ok());
  EXPECT_EQ(row.FindBest(), 0);
  const std::vector<float> broken{1.0f, std::nanf("")};
  EXPECT_EQ(row.Reset(Logits(logits, broken), {}).code(), Code::kInternal);
}

TEST(LogitRow, BrokenLogitsAreRefusedWhateverTheMask) {
  LogitRow row;
  const uint32_t none[] = {0};
  for (const float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity()})
    EXPECT_EQ(row.Reset(std::vector<float>{1, bad}, none).code(), Code::kInternal);
  EXPECT_EQ(row.Reset(std::vector<float>{kFloatMinusInfinity}, {}).code(), Code::kInternal);
  EXPECT_TRUE(row.Reset(std::vector<float>{1, 2}, none).ok());
  EXPECT_EQ(row.FindBest(), -1);
}

}  // namespace
}  // namespace tessera::engine
