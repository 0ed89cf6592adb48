// SPDX-License-Identifier: Apache-2.0
#include "net/exchange.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "base/check.h"
#include "net/response_writer.h"

namespace tessera::net {
namespace {

/// RFC 9110 section 5.6.7, always GMT.
std::string HttpDate() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(now));
}

bool MayHaveBody(int status) {
  return status != 204 && status != 304;
}

Status CheckHead(int status, const Headers& headers) {
  if (status < 200 || status > 599)
    return InvalidArgument(fmt::format("{} is no final response status", status));
  for (const std::string_view name : {"Content-Length", "Transfer-Encoding", "Connection", "Date"})
    if (headers.Has(name))
      return InvalidArgument(fmt::format("the header {} is made by the server", name));
  return headers.Check();
}

}  // namespace

Exchange::Exchange(Config config, std::function<void()> wake)
    : config_(std::move(config)), wake_(std::move(wake)) {}

Status Exchange::CheckState(State expected) const {
  if (state_ == State::kGone || state_ == State::kBroken) return Cancelled("the peer is gone");
  if (state_ != expected) return FailedPrecondition("the answer is not in this stage");
  return {};
}

void Exchange::Wake() {
  if (wake_pending_ || !wake_) return;
  wake_pending_ = true;
  wake_();
}

void Exchange::QueueHead(int status, const Headers& headers, std::string_view framing) {
  status_ = status;
  fmt::format_to(std::back_inserter(queued_), "HTTP/1.1 {} {}\r\nDate: {}\r\n", status,
                 ReasonPhrase(status), HttpDate());
  for (const auto& [name, value] : headers)
    queued_.append(name).append(": ").append(value).append("\r\n");
  queued_.append(framing);
  queued_.append(closes_ ? "Connection: close\r\n\r\n" : "\r\n");
}

Status Exchange::Send(Response response) {
  std::function<void()> dropped;  // Destroyed after the lock: what it holds may call back.
  const std::lock_guard lock(mutex_);
  TESSERA_RETURN_IF_ERROR(CheckState(State::kWaiting));
  TESSERA_RETURN_IF_ERROR(CheckHead(response.status, response.headers));
  const bool may_have_body = MayHaveBody(response.status);
  if (!may_have_body && !response.body.empty())
    return InvalidArgument(fmt::format("a {} answer has no body", response.status));
  closes_ = !config_.keep_alive || config_.is_draining->load();
  QueueHead(response.status, response.headers,
            may_have_body ? fmt::format("Content-Length: {}\r\n", response.body.size()) : "");
  if (!config_.is_head) {
    queued_.append(response.body);
    body_bytes_ = response.body.size();
  }
  state_ = State::kAnswered;
  dropped.swap(on_disconnect_);
  Wake();
  return {};
}

Status Exchange::StartStream(int status, Headers headers) {
  const std::lock_guard lock(mutex_);
  TESSERA_RETURN_IF_ERROR(CheckState(State::kWaiting));
  TESSERA_RETURN_IF_ERROR(CheckHead(status, headers));
  if (!MayHaveBody(status))
    return InvalidArgument(fmt::format("a {} answer has no body to stream", status));
  is_chunked_ = config_.is_http11;
  // Without chunks only the end of the connection tells the peer where the body ends.
  closes_ = !config_.keep_alive || !is_chunked_ || config_.is_draining->load();
  QueueHead(status, headers, is_chunked_ ? "Transfer-Encoding: chunked\r\n" : "");
  state_ = State::kStreaming;
  Wake();
  return {};
}

Status Exchange::Write(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  TESSERA_RETURN_IF_ERROR(CheckState(State::kStreaming));
  if (bytes.empty() || config_.is_head) return {};
  const uint64_t unsent = queued_.size() + taken_;
  if (unsent > 0 && unsent + bytes.size() > config_.unsent_max) {
    state_ = State::kBroken;  // The connection reports the disconnect from its own thread.
    wake_pending_ = false;    // It may be waiting in the write that does not end.
    Wake();
    return ResourceExhausted(
        fmt::format("the peer reads too slowly: {} bytes are waiting for it", unsent));
  }
  if (is_chunked_) fmt::format_to(std::back_inserter(queued_), "{:x}\r\n", bytes.size());
  queued_.append(bytes);
  if (is_chunked_) queued_.append("\r\n");
  body_bytes_ += bytes.size();
  Wake();
  return {};
}

Status Exchange::Finish() {
  std::function<void()> dropped;  // As in Send.
  const std::lock_guard lock(mutex_);
  TESSERA_RETURN_IF_ERROR(CheckState(State::kStreaming));
  if (is_chunked_ && !config_.is_head) queued_.append("0\r\n\r\n");
  state_ = State::kAnswered;
  dropped.swap(on_disconnect_);
  Wake();
  return {};
}

void Exchange::OnDisconnect(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kGone) {
      if (state_ != State::kAnswered) on_disconnect_.swap(callback);
      return;
    }
  }
  if (callback) callback();
}

bool Exchange::is_disconnected() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kGone || state_ == State::kBroken;
}

uint64_t Exchange::unsent_bytes() const {
  const std::lock_guard lock(mutex_);
  return queued_.size() + taken_;
}

Status Exchange::WaitForRoom(Duration timeout) {
  std::unique_lock lock(mutex_);
  const bool in_time = room_.wait_for(lock, timeout, [&] {
    return queued_.size() + taken_ <= config_.unsent_max / 2 || state_ == State::kGone ||
           state_ == State::kBroken;
  });
  if (state_ == State::kGone || state_ == State::kBroken) return Cancelled("the peer is gone");
  if (!in_time) return DeadlineExceeded("the peer did not take what is waiting for it in time");
  return {};
}

void Exchange::Abandon() {
  bool needs_answer = false;
  {
    const std::lock_guard lock(mutex_);
    needs_answer = state_ == State::kWaiting;
    if (state_ == State::kStreaming) {
      state_ = State::kBroken;
      wake_pending_ = false;
      Wake();
    }
  }
  if (!needs_answer) return;
  const HttpError error{500, "internal_error", "the request was given up by the server"};
  if (!Send(config_.error_hook(error)).ok()) (void)Send(DefaultErrorResponse(error));
}

Exchange::Output Exchange::Take() {
  const std::lock_guard lock(mutex_);
  wake_pending_ = false;
  taken_ += queued_.size();
  return {.bytes = std::exchange(queued_, {}), .is_complete = state_ == State::kAnswered};
}

void Exchange::Written(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  TESSERA_CHECK(bytes <= taken_);
  taken_ -= bytes;
  room_.notify_all();
}

void Exchange::Disconnect() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kAnswered || state_ == State::kGone) return;
    state_ = State::kGone;
    queued_.clear();
    callback = std::exchange(on_disconnect_, nullptr);
    room_.notify_all();
  }
  if (callback) callback();
}

void Exchange::Detach() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
}

bool Exchange::is_answered() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kAnswered;
}

bool Exchange::is_broken() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kBroken;
}

int Exchange::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

uint64_t Exchange::body_bytes() const {
  const std::lock_guard lock(mutex_);
  return body_bytes_;
}

struct ResponseWriter::Guard {
  explicit Guard(std::shared_ptr<Exchange> shared) : exchange(std::move(shared)) {}
  ~Guard() { exchange->Abandon(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  std::shared_ptr<Exchange> exchange;
};

ResponseWriter::ResponseWriter(std::shared_ptr<Exchange> exchange)
    : guard_(std::make_shared<Guard>(std::move(exchange))) {}

Status ResponseWriter::Send(Response response) const {
  return guard_->exchange->Send(std::move(response));
}
Status ResponseWriter::StartStream(int status, Headers headers) const {
  return guard_->exchange->StartStream(status, std::move(headers));
}
Status ResponseWriter::Write(std::string_view bytes) const {
  return guard_->exchange->Write(bytes);
}
Status ResponseWriter::Finish() const {
  return guard_->exchange->Finish();
}
void ResponseWriter::OnDisconnect(std::function<void()> callback) const {
  guard_->exchange->OnDisconnect(std::move(callback));
}
bool ResponseWriter::disconnected() const {
  return guard_->exchange->is_disconnected();
}
uint64_t ResponseWriter::unsent_bytes() const {
  return guard_->exchange->unsent_bytes();
}
Status ResponseWriter::WaitForRoom(Duration timeout) const {
  return guard_->exchange->WaitForRoom(timeout);
}

}  // namespace tessera::net
