// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_queue.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/limits.h"

namespace tessera::engine {
namespace {

using Waiting = FairQueue::Waiting;
using Order = std::vector<size_t>;

TEST(FairQueue, OneClientIsServedInOrderOfArrival) {
  FairQueue queue;
  queue.Enter(1);
  const std::vector<Waiting> waiting{{1, 0, 500}, {1, 0, 3}, {1, 0, 70}};
  EXPECT_EQ(queue.Order(waiting), (Order{0, 1, 2}));
}

TEST(FairQueue, ClientsTakeTurnsByWhatTheyAskFor) {
  FairQueue queue;
  queue.Enter(1);
  queue.Enter(2);
  // The first sent four at once, the second two later: they alternate as counters say.
  const std::vector<Waiting> waiting{{1, 0, 100}, {1, 0, 100}, {1, 0, 100},
                                     {1, 0, 100}, {2, 0, 150}, {2, 0, 10}};
  EXPECT_EQ(queue.Order(waiting), (Order{0, 4, 1, 5, 2, 3}));
}

TEST(FairQueue, WhoGotMoreComesLater) {
  FairQueue queue;
  queue.Enter(1);
  queue.Enter(2);
  queue.Charge(1, 1000);
  EXPECT_EQ(queue.Order(std::vector<Waiting>{{1, 0, 10}, {2, 0, 900}, {2, 0, 50}}),
            (Order{1, 2, 0}));
}

TEST(FairQueue, APriorityStandsAboveFairness) {
  FairQueue queue;
  queue.Enter(1);
  queue.Enter(2);
  queue.Charge(1, 1e6);
  EXPECT_EQ(queue.Order(std::vector<Waiting>{{2, 0, 1}, {2, 5, 1}, {1, -1, 1}, {1, 0, 1}}),
            (Order{2, 0, 3, 1}));
}

TEST(FairQueue, IdleTimeIsNotSavedUp) {
  FairQueue queue;
  queue.Enter(1);
  queue.Charge(1, 5000);
  queue.Enter(2);  // Comes when the first has had much: from now on they are equals.
  EXPECT_EQ(queue.CounterOf(2), 5000);
  queue.Charge(2, 10);
  queue.Leave(2);
  queue.Charge(1, 100);
  queue.Enter(2);
  EXPECT_EQ(queue.CounterOf(2), 5100);
}

TEST(FairQueue, LeavingAndComingBackIsNoWayToForget) {
  FairQueue queue;
  queue.Enter(1);
  queue.Enter(2);
  queue.Charge(2, 700);
  queue.Leave(2);
  queue.Enter(2);
  EXPECT_EQ(queue.CounterOf(2), 700);
}

TEST(FairQueue, RemembersSoManyClients) {
  FairQueue queue;
  for (int64_t i = 0; i < kClientsRemembered + 500; ++i) {
    queue.Enter(static_cast<ClientId>(i));
    queue.Leave(static_cast<ClientId>(i));
  }
  EXPECT_LE(queue.clients(), kClientsRemembered + 1);
}

TEST(FairQueue, InTheLongRunSharesAreEqual) {
  // Three clients with queues that never empty, of short, middling and long requests.
  FairQueue queue;
  const std::map<ClientId, int64_t> sizes{{1, 20}, {2, 100}, {3, 900}};
  std::map<ClientId, double> got;
  for (const auto& [client, size] : sizes) queue.Enter(client);
  for (int round = 0; round < 5000; ++round) {
    const std::vector<Waiting> waiting{{1, 0, 20}, {2, 0, 100}, {3, 0, 900}};
    const Waiting& next = waiting[queue.Order(waiting).front()];
    const double work = static_cast<double>(next.prompt_tokens) * FairQueue::kPromptToken +
                        5 * FairQueue::kGeneratedToken;
    queue.Charge(next.client, work);
    got[next.client] += work;
  }
  EXPECT_NEAR(got[1] / got[3], 1, 0.1);
  EXPECT_NEAR(got[2] / got[3], 1, 0.1);
}

}  // namespace
}  // namespace tessera::engine
