// SPDX-License-Identifier: Apache-2.0
#include "server/request_record.h"

#include <chrono>
#include <utility>

namespace tessera::server {

RequestScope::RequestScope(RequestRecord record, const Clock* clock, OnRequestEnd on_end)
    : record_(std::move(record)), clock_(clock), on_end_(std::move(on_end)) {}

RequestScope::~RequestScope() {
  if (!on_end_) return;
  // The last writer is gone: net/ says 500, or cuts the stream.
  record_.was_cut = true;
  if (record_.status == 0) record_.status = 500;
  Report();
}

void RequestScope::Begin(int status) {
  record_.status = status;
}

void RequestScope::End() {
  Report();
}

void RequestScope::EndCut() {
  record_.was_cut = true;
  constexpr int kClientClosedRequest = 499;
  if (record_.status == 0) record_.status = kClientClosedRequest;
  Report();
}

void RequestScope::Report() {
  if (!on_end_) return;
  record_.duration = clock_->Now() - record_.arrival;
  std::exchange(on_end_, nullptr)(record_);
}

int64_t UnixNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace tessera::server
