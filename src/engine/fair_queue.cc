// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_queue.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "base/check.h"
#include "engine/limits.h"

namespace tessera::engine {

void FairQueue::Enter(ClientId client) {
  const auto [found, is_new] = clients_.try_emplace(client);
  if (found->second.requests++ > 0) return;
  bool has_other = false;
  double least = 0;
  for (const auto& [id, other] : clients_) {
    if (id == client || other.requests == 0) continue;
    least = has_other ? std::min(least, other.counter) : other.counter;
    has_other = true;
  }
  if (has_other) found->second.counter = std::max(found->second.counter, least);
  if (clients() > kClientsRemembered) ForgetOne();
}

void FairQueue::Leave(ClientId client) {
  Client& mine = clients_.at(client);
  TESSERA_CHECK(mine.requests > 0);
  if (--mine.requests == 0) mine.left = ++clock_;
}

void FairQueue::Charge(ClientId client, double work) {
  clients_.at(client).counter += work;
}

double FairQueue::CounterOf(ClientId client) const {
  const auto found = clients_.find(client);
  return found == clients_.end() ? 0 : found->second.counter;
}

void FairQueue::ForgetOne() {
  auto longest = clients_.end();
  for (auto it = clients_.begin(); it != clients_.end(); ++it)
    if (it->second.requests == 0 &&
        (longest == clients_.end() || it->second.left < longest->second.left))
      longest = it;
  if (longest != clients_.end()) clients_.erase(longest);
}

std::vector<size_t> FairQueue::Order(std::span<const Waiting> waiting) const {
  // Of each client and priority the requests in order of arrival.
  struct Line {
    std::vector<size_t> requests;
    size_t next = 0;
  };
  std::unordered_map<ClientId, double> counters;
  std::vector<std::pair<std::pair<int32_t, ClientId>, size_t>> sorted;
  for (size_t i = 0; i < waiting.size(); ++i) {
    sorted.push_back({{waiting[i].priority, waiting[i].client}, i});
    counters.try_emplace(waiting[i].client, CounterOf(waiting[i].client));
  }
  std::ranges::sort(sorted);
  std::vector<size_t> order;
  order.reserve(waiting.size());
  for (size_t begin = 0; begin < sorted.size();) {
    const int32_t priority = sorted[begin].first.first;
    std::vector<Line> lines;
    size_t end = begin;
    for (; end < sorted.size() && sorted[end].first.first == priority; ++end) {
      if (end == begin || sorted[end].first != sorted[end - 1].first) lines.emplace_back();
      lines.back().requests.push_back(sorted[end].second);
    }
    begin = end;
    using Entry = std::tuple<double, size_t, size_t>;  // Counter, first of its requests, line.
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> least;
    const auto add = [&](size_t line) {
      const size_t request = lines[line].requests[lines[line].next];
      least.emplace(counters.at(waiting[request].client), request, line);
    };
    for (size_t line = 0; line < lines.size(); ++line) add(line);
    while (!least.empty()) {
      const auto [counter, request, line] = least.top();
      least.pop();
      order.push_back(request);
      counters.at(waiting[request].client) +=
          kPromptToken * static_cast<double>(waiting[request].prompt_tokens);
      if (++lines[line].next < lines[line].requests.size()) add(line);
    }
  }
  return order;
}

}  // namespace tessera::engine
