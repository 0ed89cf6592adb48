// SPDX-License-Identifier: Apache-2.0
//
// FairQueue: whose request is taken next, so that clients get equal shares of the engine whatever
// number of requests each has waiting: virtual token counters (Sheng et al., "Fairness in serving
// large language models", OSDI 2024). Each client's counter grows with the work done for it: 1 for
// a computed prompt token, 2 for a generated one. The client with the least counter comes first.
// Who has nothing in the system gains nothing by it: on return its counter is lifted to the least
// of those that have.
//
// Plain values, one owner.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/request.h"

namespace tessera::engine {

class FairQueue {
 public:
  static constexpr double kPromptToken = 1;
  static constexpr double kGeneratedToken = 2;

  /// A request came, or ended.
  void Enter(ClientId client);
  void Leave(ClientId client);
  void Charge(ClientId client, double work);

  struct Waiting {
    ClientId client = 0;
    int32_t priority = 0;
    int64_t prompt_tokens = 0;
  };
  /// The order in which `waiting`, given in order of arrival, are to be taken: lesser priority
  /// first, then fairly, each client's own in order of arrival. Indices.
  std::vector<size_t> Order(std::span<const Waiting> waiting) const;

  double CounterOf(ClientId client) const;
  int64_t clients() const { return std::ssize(clients_); }

 private:
  struct Client {
    double counter = 0;
    int64_t requests = 0;
    uint64_t left = 0;  // When it had none, for forgetting the longest gone.
  };
  void ForgetOne();

  std::unordered_map<ClientId, Client> clients_;
  uint64_t clock_ = 0;
};

}  // namespace tessera::engine
