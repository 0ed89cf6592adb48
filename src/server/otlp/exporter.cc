// SPDX-License-Identifier: Apache-2.0
#include "server/otlp/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"

namespace tessera::server::otlp {
namespace {

constexpr Duration kWarnInterval = std::chrono::minutes(1);
constexpr uint64_t kAnswerBytesMax = 64u << 10;

/// Section "Retryable Response Codes" of the OTLP specification.
bool IsWorthRetrying(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

/// {"partialSuccess": {"rejectedSpans": "3"}}; 0 where the answer is anything else.
uint64_t RejectedSpans(const std::string& answer) {
  const auto parsed = json::Parse(answer, {.max_bytes = kAnswerBytesMax}, "the collector's answer");
  if (!parsed.has_value() || !parsed->is_object()) return 0;
  const json::Value* partial = json::Find(parsed->as_object(), "partialSuccess");
  if (partial == nullptr || !partial->is_object()) return 0;
  const json::Value* rejected = json::Find(partial->as_object(), "rejectedSpans");
  if (rejected == nullptr) return 0;
  if (rejected->is_int64())
    return static_cast<uint64_t>(std::max<int64_t>(rejected->as_int64(), 0));
  if (!rejected->is_string()) return 0;
  const std::string_view text = rejected->as_string();
  uint64_t count = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

}  // namespace

Exporter::Exporter(ExporterOptions options)
    : options_(std::move(options)),
      client_({.host = options_.endpoint.host,
               .port = options_.endpoint.port,
               .connect_timeout = options_.call_timeout,
               .idle_timeout = options_.call_timeout,
               .body_bytes_max = kAnswerBytesMax}) {}

Result<std::unique_ptr<Exporter>> Exporter::Start(ExporterOptions options) {
  std::unique_ptr<Exporter> exporter(new Exporter(std::move(options)));
  TESSERA_ASSIGN_OR_RETURN(exporter->thread_, StartThread("the exporter of traces",
                                                          [raw = exporter.get()] { raw->Run(); }));
  return exporter;
}

Exporter::~Exporter() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  client_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void Exporter::Export(const RequestRecord& record) {
  if (!record.trace.is_sampled()) return;
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= options_.queue_requests) {
    counters_.dropped += SpansOf(record).size();
    return;
  }
  queue_.push_back(record);
  if (queue_.size() == 1 || queue_.size() == options_.batch_requests) changed_.notify_all();
}

void Exporter::Flush(Duration patience) {
  std::unique_lock lock(mutex_);
  is_flushing_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, patience, [this] { return queue_.empty() && !is_busy_; });
  is_flushing_ = false;
}

ExporterCounters Exporter::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void Exporter::Run() {
  for (;;) {
    const std::vector<Span> spans = NextBatch();
    if (spans.empty()) return;
    Send(spans);
    const std::lock_guard lock(mutex_);
    is_busy_ = false;
    changed_.notify_all();
  }
}

std::vector<Span> Exporter::NextBatch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
  changed_.wait_for(lock, options_.linger, [this] {
    return is_stopping_ || is_flushing_ || queue_.size() >= options_.batch_requests;
  });
  if (is_stopping_) return {};
  std::vector<RequestRecord> records;
  while (!queue_.empty() && records.size() < options_.batch_requests) {
    records.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  is_busy_ = true;
  lock.unlock();
  std::vector<Span> spans;
  for (const RequestRecord& record : records)
    for (Span& span : SpansOf(record)) spans.push_back(std::move(span));
  return spans;
}

void Exporter::Send(const std::vector<Span>& spans) {
  const std::string body = EncodeTraces(spans, TESSERA_VERSION);
  Duration wait = options_.retry_wait;
  Status status;
  for (int attempt = 0; attempt < options_.tries; ++attempt, wait *= 2) {
    if (attempt > 0 && !WaitToRetry(wait)) break;
    status = Deliver(body);
    if (status.ok()) return CountDelivered(spans.size(), answer_);
    Warn(0, status);
    if (status.code() != Code::kUnavailable && status.code() != Code::kDeadlineExceeded) break;
  }
  Warn(spans.size(), status);
  const std::lock_guard lock(mutex_);
  counters_.failed += spans.size();
}

Status Exporter::Deliver(const std::string& body) {
  const auto response = client_.Call({.method = "POST",
                                      .target = options_.endpoint.target,
                                      .headers = {{"Content-Type", "application/json"}},
                                      .body = body});
  if (!response.has_value()) return response.error();
  if (response->status >= 200 && response->status < 300) {
    answer_ = response->body;
    return {};
  }
  const std::string what = fmt::format("it answered {}", response->status);
  return IsWorthRetrying(response->status) ? Unavailable(what) : InvalidArgument(what);
}

void Exporter::CountDelivered(size_t spans, const std::string& answer) {
  const uint64_t rejected = std::min<uint64_t>(RejectedSpans(answer), spans);
  const std::lock_guard lock(mutex_);
  counters_.sent += spans - rejected;
  counters_.rejected += rejected;
}

void Exporter::Warn(size_t spans, const Status& why) {
  failed_unsaid_ += spans;
  const TimePoint now = Clock::Real().Now();
  if (warned_at_ != TimePoint() && now - warned_at_ < kWarnInterval) return;
  warned_at_ = now;
  log::warn(
      "otlp: the collector at {} does not take traces ({}); {} spans were lost since the "
      "last such line",
      options_.endpoint.name, why.ToString(), std::exchange(failed_unsaid_, 0));
}

bool Exporter::WaitToRetry(Duration wait) {
  std::unique_lock lock(mutex_);
  // The end of the process waits for no patient collector: while flushing, at once.
  changed_.wait_for(lock, wait, [this] { return is_stopping_ || is_flushing_; });
  return !is_stopping_;
}

}  // namespace tessera::server::otlp
