// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "cli/rank_supervisor.h"

namespace tessera::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Ends {
  RankDoor door;
  RankLink rank, supervisor;
};

std::optional<Ends> Connected() {
  auto door = RankDoor::Open();
  if (!door.has_value()) return std::nullopt;
  auto rank = RankLink::Connect(door->name());
  auto supervisor = door->Accept();
  if (!rank.has_value() || !supervisor.has_value()) return std::nullopt;
  return Ends{*std::move(door), *std::move(rank), *std::move(supervisor)};
}

TEST(RankLink, MessagesKeepTheirBordersAndOrder) {
  auto ends = Connected();
  ASSERT_TRUE(ends.has_value());
  EXPECT_TRUE(ends->rank.Send(RankWord::kHello, "3").ok());
  EXPECT_TRUE(ends->rank.Send(RankWord::kReady).ok());
  const auto first = ends->supervisor.Receive(false);
  ASSERT_TRUE(first.has_value() && first->has_value());
  EXPECT_EQ((*first)->word, RankWord::kHello);
  EXPECT_EQ((*first)->text, "3");
  EXPECT_EQ((*first)->fd, -1);
  const auto second = ends->supervisor.Receive(false);
  ASSERT_TRUE(second.has_value() && second->has_value());
  EXPECT_EQ((*second)->word, RankWord::kReady);
  EXPECT_EQ((*second)->text, "");
  EXPECT_EQ(ends->supervisor.Receive(false).error().code(), Code::kUnavailable);
  EXPECT_EQ(ends->supervisor.Peer(), getpid());
}

TEST(RankLink, TextsAreCutAtTheirLimit) {
  auto ends = Connected();
  ASSERT_TRUE(ends.has_value());
  for (const size_t size : {kRankTextBytesMax - 1, kRankTextBytesMax, kRankTextBytesMax + 1}) {
    EXPECT_TRUE(ends->rank.Send(RankWord::kError, std::string(size, 'x')).ok());
    EXPECT_EQ((*ends->supervisor.Receive(false))->text.size(), std::min(size, kRankTextBytesMax));
  }
}

TEST(RankLink, ADescriptorComesAlongAndIsAnother) {
  auto ends = Connected();
  ASSERT_TRUE(ends.has_value());
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  EXPECT_TRUE(ends->supervisor.Send(RankWord::kListener, "", pipe_ends[1]).ok());
  const auto message = ends->rank.Receive(true);
  ASSERT_TRUE(message.has_value() && message->has_value());
  ASSERT_GE((*message)->fd, 0);
  EXPECT_NE((*message)->fd, pipe_ends[1]);
  EXPECT_EQ(write((*message)->fd, "x", 1), 1);
  char got = 0;
  EXPECT_EQ(read(pipe_ends[0], &got, 1), 1);
  EXPECT_EQ(got, 'x');
  for (const int fd : {pipe_ends[0], pipe_ends[1], (*message)->fd}) close(fd);
}

TEST(RankLink, TheEndOfOneSideIsSeenByTheOther) {
  auto ends = Connected();
  ASSERT_TRUE(ends.has_value());
  ends->supervisor.EndSending();
  const auto end = ends->rank.Receive(true);
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->has_value());
  EXPECT_TRUE(ends->rank.Send(RankWord::kError, "last words").ok()) << "the way back is open";
  EXPECT_EQ((*ends->supervisor.Receive(false))->text, "last words");
  { const RankLink gone = std::move(ends->rank); }
  const auto other = ends->supervisor.Receive(false);
  ASSERT_TRUE(other.has_value());
  EXPECT_FALSE(other->has_value());
}

TEST(RankLink, NoGroupOnThisHostIsNotFound) {
  EXPECT_EQ(RankLink::Connect("tessera-ranks-none").error().code(), Code::kNotFound);
  EXPECT_EQ(RankLink::Connect(std::string(200, 'x')).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(RankLink::Connect("").error().code(), Code::kInvalidArgument);
}

TEST(RankDoor, NobodyWaitingIsNothing) {
  const auto door = RankDoor::Open();
  ASSERT_TRUE(door.has_value());
  RankDoor other = *RankDoor::Open();
  EXPECT_NE(door->name(), other.name());
  EXPECT_FALSE(other.Accept().has_value());
}

TEST(MpirunOptions, AreSplitAtBlanksBehindTheHosts) {
  const auto options =
      MpirunOptions({.is_on = true, .hostfile = "h", .mpirun_options = " --mca btl  tcp,self "}, 2);
  ASSERT_TRUE(options.has_value());
  EXPECT_THAT(*options, ElementsAre("--hostfile", "h", "--mca", "btl", "tcp,self"));
}

TEST(MpirunOptions, RefuseWhatIsNotForThemToSay) {
  EXPECT_THAT(MpirunOptions({.is_on = true}, 1).error().message(), HasSubstr("--tp 2 or more"));
  for (const char* count : {"-n 3", "--map-by node -np 3", "--np 3", "-c 3", "--n 3"})
    EXPECT_THAT(MpirunOptions({.is_on = true, .mpirun_options = count}, 2).error().message(),
                HasSubstr("is given by --tp"));
  EXPECT_THAT(MpirunOptions({.is_on = true, .mpirun_options = "sh run"}, 2).error().message(),
              HasSubstr("\"sh\" is no option of mpirun"));
}

}  // namespace
}  // namespace tessera::cli
