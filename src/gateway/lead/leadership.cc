// SPDX-License-Identifier: Apache-2.0
#include "gateway/lead/leadership.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace tessera::gateway {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(500);

}  // namespace

Result<std::unique_ptr<Leadership>> Leadership::Start(std::string url, std::string address,
                                                      LeadershipHooks hooks) {
  std::unique_ptr<Leadership> leadership(
      new Leadership(std::move(url), std::move(address), std::move(hooks)));
  if (Status looked = leadership->Look(); !looked.ok()) return Fail(std::move(looked));
  TESSERA_ASSIGN_OR_RETURN(leadership->thread_,
                           StartThread("leadership", [self = leadership.get()] { self->Loop(); }));
  return leadership;
}

Leadership::~Leadership() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Status Leadership::Look() {
  if (candidate_ == nullptr) {
    TESSERA_ASSIGN_OR_RETURN(candidate_, Candidate::Join(url_, address_));
  }
  const auto leads = candidate_->TryLead();
  if (!leads.has_value()) {
    candidate_ = nullptr;  // A connection is not mended.
    return leads.error();
  }
  if (!*leads) {
    auto leader = candidate_->Leader();
    if (!leader.has_value()) {
      candidate_ = nullptr;
      return leader.error();
    }
    hooks_.follow(*std::move(leader));
    return {};
  }
  const std::unique_ptr<Candidate> chosen = std::move(candidate_);
  const Status begun = hooks_.lead(chosen->TakeDatabase());
  if (begun.code() == Code::kUnavailable) {
    log::info("gateway: cannot lead yet: {}", begun.message());
    hooks_.follow(std::nullopt);
    return {};
  }
  TESSERA_RETURN_IF_ERROR(begun);
  log::info("gateway: {} leads", address_);
  leads_ = true;
  return {};
}

void Leadership::Loop() {
  std::string last_trouble;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLookEvery, [&] { return is_ending_; });
      if (is_ending_) return;
    }
    if (leads_) {
      const Status there = hooks_.check();
      if (there.ok()) continue;
      return hooks_.lost(there);
    }
    const Status looked = Look();
    if (!looked.ok()) hooks_.follow(std::nullopt);
    // Once, not twice a second.
    if (!looked.ok() && looked.ToString() != last_trouble)
      log::warn("gateway: {}", looked.ToString());
    last_trouble = looked.ok() ? "" : looked.ToString();
  }
}

}  // namespace tessera::gateway
