// SPDX-License-Identifier: Apache-2.0
//
// Exporter: sends finished requests as spans to a collector (OTLP over HTTP, JSON), in batches, on
// a thread of its own. No request ever waits for it: what the queue does not take is dropped and
// counted. A collector that fails is tried again for a while, with a warning at most once a minute.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/client.h"
#include "server/otlp/endpoint.h"
#include "server/otlp/span.h"
#include "server/request_record.h"

namespace tessera::server::otlp {

struct ExporterOptions {
  Endpoint endpoint;
  size_t queue_requests = 2048;               // Waiting to be sent; beyond, dropped.
  size_t batch_requests = 256;                // In one call.
  Duration linger = std::chrono::seconds(1);  // A batch that is not full waits for so long.
  Duration call_timeout = std::chrono::seconds(10);
  Duration retry_wait = std::chrono::seconds(1);  // Doubles with each of
  int tries = 5;
};

/// Spans since the start.
struct ExporterCounters {
  uint64_t sent = 0;
  uint64_t rejected = 0;  // By the collector, one by one.
  uint64_t dropped = 0;   // Requests' spans that the queue had no room for.
  uint64_t failed = 0;    // In batches that could not be delivered.
};

class Exporter {
 public:
  /// kResourceExhausted when the system gives no thread. Reaches for no collector yet.
  static Result<std::unique_ptr<Exporter>> Start(ExporterOptions options);
  /// Drops what is left.
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  /// Queues the request if its trace is sampled. Any thread; never blocks.
  void Export(const RequestRecord& record);
  /// Sends what is queued now, without lingering, trying for at most `patience`. One thread.
  void Flush(Duration patience);
  ExporterCounters counters() const;

 private:
  explicit Exporter(ExporterOptions options);
  void Run();
  /// Waits for a batch; empty at the end.
  std::vector<Span> NextBatch();
  void Send(const std::vector<Span>& spans);
  /// kUnavailable: trying again may help.
  Status Deliver(const std::string& body);
  void CountDelivered(size_t spans, const std::string& answer);
  void Warn(size_t spans, const Status& why);
  /// False when the exporter stops meanwhile.
  bool WaitToRetry(Duration wait);

  const ExporterOptions options_;
  net::HttpClient client_;
  std::string answer_;  // Of the last call. Of the thread, like the next two.
  TimePoint warned_at_{};
  uint64_t failed_unsaid_ = 0;  // Spans lost since the last warning.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RequestRecord> queue_;
  bool is_busy_ = false;      // A batch is under way.
  bool is_flushing_ = false;  // Nothing lingers, and no wait is long.
  bool is_stopping_ = false;
  ExporterCounters counters_;
  std::thread thread_;
};

}  // namespace tessera::server::otlp
