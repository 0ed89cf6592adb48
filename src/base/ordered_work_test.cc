// SPDX-License-Identifier: Apache-2.0
#include "base/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace tessera {
namespace {

Status Fill(int64_t item, std::vector<std::byte>* bytes) {
  bytes->assign(static_cast<size_t>(item % 7), static_cast<std::byte>(item));
  return {};
}

TEST(OrderedWork, TakesEveryPieceOnceInOrder) {
  for (const int threads : {0, 1, 2, 5}) {
    for (const int64_t count : {0, 1, 2, 3, 100}) {
      int64_t next = 0;
      const Status status = MakeInOrder(count, threads, Fill, [&](int64_t item, ByteSpan bytes) {
        EXPECT_EQ(item, next++);
        EXPECT_EQ(bytes.size(), static_cast<size_t>(item % 7));
        for (const std::byte byte : bytes) EXPECT_EQ(byte, static_cast<std::byte>(item));
        return Status();
      });
      EXPECT_TRUE(status.ok());
      EXPECT_EQ(next, count) << threads;
    }
  }
}

TEST(OrderedWork, TheFirstErrorInOrderEndsIt) {
  for (const int threads : {0, 1, 3}) {
    std::atomic<int64_t> made = 0;
    int64_t taken = 0;
    const Status status = MakeInOrder(
        1000, threads,
        [&](int64_t item, std::vector<std::byte>*) {
          ++made;
          return item >= 5 ? DataLoss("piece " + std::to_string(item)) : Status();
        },
        [&](int64_t, ByteSpan) {
          ++taken;
          return Status();
        });
    EXPECT_EQ(status.ToString(), "piece 5");
    EXPECT_EQ(taken, 5);
    EXPECT_LE(made, 5 + 1 + kPiecesAhead * 3) << "makers run ahead of the taker by the ring only";
  }
}

TEST(OrderedWork, AnErrorOfTheTakerEndsTheMakers) {
  int64_t taken = 0;
  const Status status = MakeInOrder(1000, 2, Fill, [&](int64_t item, ByteSpan) {
    ++taken;
    return item == 3 ? ResourceExhausted("disk full") : Status();
  });
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(taken, 4);
}

}  // namespace
}  // namespace tessera
