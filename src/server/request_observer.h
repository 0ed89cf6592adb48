// SPDX-License-Identifier: Apache-2.0
//
// RequestObserver: opens a record for each HTTP request and, when it is over, writes its line in
// the log, counts it and passes it on. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log_line.h"
#include "net/errors.h"
#include "net/http.h"
#include "server/request_record.h"
#include "server/serving_stats.h"

namespace tessera::server {

class RequestObserver {
 public:
  /// `clock` and `stats` must outlive the observer, the observer all scopes. `also` may be null.
  RequestObserver(const Clock* clock, ServingStats* stats, OnRequestEnd also)
      : clock_(clock), stats_(stats), also_(std::move(also)) {}

  std::shared_ptr<RequestScope> Open(const net::Request& request, std::string_view route,
                                     std::string request_id) const;

 private:
  const Clock* const clock_;
  ServingStats* const stats_;
  const OnRequestEnd also_;
};

/// The fields of a request's line. They see into `record`.
std::vector<log::Field> AccessFields(const RequestRecord& record);

/// `hook`, and a line for each message that was refused before it was a request: malformed, over a
/// limit, no room.
net::ErrorHook LogRefusals(net::ErrorHook hook);

}  // namespace tessera::server
