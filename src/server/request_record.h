// SPDX-License-Identifier: Apache-2.0
//
// RequestRecord: what there is to tell of one HTTP request when it is over: its line in the log,
// its span. Never what was said: no prompt, no output, no key. RequestScope keeps it while the
// request is open and reports it exactly once.
//
// Thread rule: the handler's thread fills the record until it hands the request on, the task thread
// from then on; posting orders the two.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "server/generation_facts.h"
#include "server/trace_context.h"

namespace tessera::server {

struct RequestRecord {
  std::string request_id;
  TraceContext trace;
  std::string method;
  std::string path;      // Decoded: any text that a client likes.
  std::string route;     // The pattern that took it; empty where none did.
  std::string key_name;  // Of the API key, where keys have names.
  std::string model;     // Served to it; empty where no model was asked.
  TimePoint arrival{};
  int64_t arrival_unix_ns = 0;

  // Of the answer.
  int status = 0;        // 499: the client left before the answer began.
  bool was_cut = false;  // The client left, or the answer was given up, before it was complete.
  Duration duration{};
  std::optional<GenerationFacts> generation;
};

/// Called once for each request, on the thread that ends it; must not block.
using OnRequestEnd = std::function<void(const RequestRecord&)>;

class RequestScope {
 public:
  /// `clock` and whatever `on_end` reaches must outlive the scope.
  RequestScope(RequestRecord record, const Clock* clock, OnRequestEnd on_end);
  /// A request that nobody answers ends here.
  ~RequestScope();
  RequestScope(const RequestScope&) = delete;
  RequestScope& operator=(const RequestScope&) = delete;

  RequestRecord& record() { return record_; }
  const RequestRecord& record() const { return record_; }

  void Begin(int status);
  /// The complete answer was handed over.
  void End();
  /// The client had left.
  void EndCut();

 private:
  void Report();

  RequestRecord record_;
  const Clock* const clock_;
  OnRequestEnd on_end_;  // Empty once it was called.
};

/// Nanoseconds since 1970-01-01 UTC.
int64_t UnixNanoseconds();

}  // namespace tessera::server
