// SPDX-License-Identifier: Apache-2.0
#include "net/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace tessera::net {
namespace {

// Most connections wait, for a request or for the end of an answer; bodies come in larger pieces.
constexpr size_t kReadBytes = 2u << 10;
constexpr size_t kReadBodyBytes = 64u << 10;
// While draining, a peer that got its last answer is not waited for longer than this.
constexpr Duration kDrainLinger = std::chrono::milliseconds(200);

}  // namespace

Connection::Connection(std::unique_ptr<Transport> transport, ConnectionHost* host)
    : transport_(std::move(transport)),
      host_(host),
      limits_(host->limits()),
      parser_(limits_, host->body_receiver_hook()) {
  host_->counters().open.fetch_add(1);
}

Connection::~Connection() {
  TESSERA_CHECK(phase_ == Phase::kClosed);
}

// --- Start and end -------------------------------------------------------------------------

void Connection::Start() {
  SetTimer(limits_.header_timeout);
  transport_->Start([self = shared_from_this()](const Status& status) {
    self->OnStarted(status, /*is_refused=*/false);
  });
}

void Connection::StartRefused() {
  SetTimer(limits_.linger_timeout);
  transport_->Start([self = shared_from_this()](const Status& status) {
    self->OnStarted(status, /*is_refused=*/true);
  });
}

void Connection::OnStarted(const Status& status, bool is_refused) {
  if (phase_ == Phase::kClosed) return;
  if (!status.ok()) return Close();
  phase_ = Phase::kIdle;
  if (is_refused) return Refuse({503, "too_many_connections", "too many connections are open"});
  if (host_->draining()->load()) return Close();
  Read();
}

void Connection::Drain() {
  if (phase_ == Phase::kStarting || (phase_ == Phase::kIdle && input().empty())) Close();
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  const auto self = shared_from_this();
  if (exchange_) {
    exchange_->Detach();
    if (!exchange_->is_answered()) {
      host_->counters().disconnects.fetch_add(1);
      LogAnswer("disconnected");
      exchange_->Disconnect();
    }
    exchange_.reset();
    host_->counters().requests_open.fetch_sub(1);
  }
  ReleaseBody();
  transport_->CancelTimer();
  transport_->Close();
  host_->counters().open.fetch_sub(1);
  host_->Closed(this);
}

// --- Reading -------------------------------------------------------------------------------

void Connection::Read() {
  if (is_reading_ || at_end_ || phase_ == Phase::kClosed) return;
  // Pipelined requests wait here; a whole head must fit, or the next request could never begin.
  if (phase_ == Phase::kHandling && input().size() >= limits_.header_bytes) return;
  is_reading_ = true;
  const size_t bytes_wanted = phase_ == Phase::kBody ? kReadBodyBytes : kReadBytes;
  if (read_buffer_.size() != bytes_wanted) read_buffer_ = std::vector<char>(bytes_wanted);
  transport_->Read(read_buffer_, [self = shared_from_this()](const Status& status, size_t bytes) {
    self->OnRead(status, bytes);
  });
}

void Connection::OnRead(const Status& status, size_t bytes) {
  is_reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (!status.ok()) return Close();
  if (bytes == 0) return OnEndOfInput();
  if (phase_ != Phase::kLingering) {
    input_.append(read_buffer_.data(), bytes);
    Advance();
  }
  Read();
}

void Connection::OnEndOfInput() {
  at_end_ = true;
  // A peer that only half-closes cannot be told from one that is gone, and holding the model for
  // nobody is worse than refusing the odd half-closing client.
  const bool answer_is_ready = phase_ == Phase::kHandling && exchange_->is_answered();
  if (!answer_is_ready && !(phase_ == Phase::kLingering && is_writing_)) Close();
}

void Connection::ConsumeInput(size_t bytes) {
  input_start_ += bytes;
  if (input_start_ == input_.size()) {
    input_.clear();
    if (input_.capacity() > kReadBodyBytes) input_.shrink_to_fit();
    input_start_ = 0;
  } else if (input_start_ > kReadBodyBytes) {
    input_.erase(0, input_start_);
    input_start_ = 0;
  }
}

void Connection::Advance() {
  while (phase_ == Phase::kIdle || phase_ == Phase::kHead || phase_ == Phase::kBody) {
    if (input().empty()) return;
    const size_t used = parser_.Feed(input());
    ConsumeInput(used);
    if (phase_ == Phase::kIdle && parser_.has_begun()) BeginHead();
    switch (parser_.state()) {
      case RequestParser::State::kFailed:
        return Refuse(parser_.error());
      case RequestParser::State::kDone:
        if (phase_ == Phase::kHead) host_->counters().requests.fetch_add(1);
        return BeginRequest();
      case RequestParser::State::kBody:
        if (phase_ == Phase::kHead) {
          host_->counters().requests.fetch_add(1);
          BeginBody();
        }
        if (!ReserveBody())
          return Refuse({503, "out_of_body_memory", "too many request bodies are being read"});
        break;
      case RequestParser::State::kHead:
        break;
    }
    if (used == 0) return;
  }
}

void Connection::BeginHead() {
  phase_ = Phase::kHead;
  // The first head is timed from the accept, so that silence and dripping cost the same.
  if (!is_first_request_) SetTimer(limits_.header_timeout);
  is_first_request_ = false;
}

void Connection::BeginBody() {
  phase_ = Phase::kBody;
  body_start_ = transport_->Now();
  SetTimer(limits_.body_timeout);
  if (parser_.framing().wants_continue && input().empty())
    StartWrite("HTTP/1.1 100 Continue\r\n\r\n", /*of_exchange=*/false);
}

bool Connection::ReserveBody() {
  if (parser_.has_receiver()) return true;  // It is not kept.
  const uint64_t needed =
      std::max(parser_.framing().content_length.value_or(0), parser_.body_received());
  if (needed <= body_reserved_) return true;
  const uint64_t more = needed - body_reserved_;
  body_reserved_ = needed;
  return host_->counters().body_bytes.fetch_add(more) + more <= limits_.body_bytes_total;
}

void Connection::ReleaseBody() {
  host_->counters().body_bytes.fetch_sub(body_reserved_);
  body_reserved_ = 0;
}

// --- Handling ------------------------------------------------------------------------------

void Connection::BeginRequest() {
  phase_ = Phase::kHandling;
  transport_->CancelTimer();
  const bool keep_alive = parser_.framing().keep_alive;
  std::shared_ptr<BodyReceiver> receiver = parser_.TakeReceiver();
  Request request = parser_.Take();
  request.peer = transport_->peer();
  request_start_ = transport_->Now();
  log_line_ = fmt::format("{} {} {}", request.peer, request.method, request.path);
  Exchange::Config config{.is_head = request.method == "HEAD",
                          .is_http11 = request.version_minor == 1,
                          .keep_alive = keep_alive,
                          .unsent_max = limits_.unsent_bytes,
                          .is_draining = host_->draining(),
                          .error_hook = host_->error_hook()};
  // The raw pointers are safe: Close detaches the exchange before either dies.
  exchange_ = std::make_shared<Exchange>(std::move(config), [this, transport = transport_.get()] {
    transport->Post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Pump();
    });
  });
  host_->counters().requests_open.fetch_add(1);
  const ResponseWriter writer(exchange_);
  if (!host_->Dispatch(request, writer, std::move(receiver)))
    (void)writer.Send(
        host_->error_hook()({503, "overloaded", "too many requests are waiting; try again"}));
}

void Connection::Pump() {
  if (phase_ != Phase::kHandling) return;
  if (exchange_->is_broken()) return Close();
  if (is_writing_) return;
  Exchange::Output output = exchange_->Take();
  output_ends_answer_ = output.is_complete;
  if (!output.bytes.empty()) return StartWrite(std::move(output.bytes), /*of_exchange=*/true);
  if (output.is_complete) EndExchange();
}

void Connection::EndExchange() {
  LogAnswer("answered");
  const bool closes = exchange_->closes() || at_end_;
  exchange_->Detach();
  exchange_.reset();
  host_->counters().requests_open.fetch_sub(1);
  ReleaseBody();
  output_ends_answer_ = false;
  if (closes) return Linger();
  phase_ = Phase::kIdle;
  SetTimer(limits_.idle_timeout);
  if (host_->draining()->load() && input().empty()) return Close();
  Advance();
  Read();
}

void Connection::Refuse(const HttpError& error) {
  log::debug("net: {} refused: {} {}", transport_->peer(), error.status, error.code);
  ReleaseBody();
  Exchange::Config config{.is_head = parser_.method() == "HEAD",
                          .is_http11 = true,
                          .keep_alive = false,
                          .unsent_max = limits_.unsent_bytes,
                          .is_draining = host_->draining(),
                          .error_hook = host_->error_hook()};
  Exchange answer(std::move(config), nullptr);
  if (!answer.Send(host_->error_hook()(error)).ok()) (void)answer.Send(DefaultErrorResponse(error));
  phase_ = Phase::kLingering;
  SetTimer(limits_.linger_timeout);
  input_.clear();
  input_start_ = 0;
  std::string bytes = answer.Take().bytes;
  if (!is_writing_) return StartWrite(std::move(bytes), /*of_exchange=*/false);
  next_output_ = std::move(bytes);  // Behind a 100 Continue.
}

// --- Writing -------------------------------------------------------------------------------

void Connection::StartWrite(std::string bytes, bool of_exchange) {
  TESSERA_CHECK(!is_writing_);
  output_ = std::move(bytes);
  output_start_ = 0;
  output_is_exchange_ = of_exchange;
  is_writing_ = true;
  WriteSome();
}

void Connection::WriteSome() {
  if (phase_ == Phase::kHandling) SetTimer(limits_.write_stall_timeout);
  const std::string_view rest = std::string_view(output_).substr(output_start_);
  transport_->Write(rest, [self = shared_from_this()](const Status& status, size_t bytes) {
    self->OnWritten(status, bytes);
  });
}

void Connection::OnWritten(const Status& status, size_t bytes) {
  if (phase_ == Phase::kClosed) return;
  if (!status.ok()) return Close();
  output_start_ += bytes;
  if (output_is_exchange_) exchange_->Written(bytes);
  if (output_start_ < output_.size()) return WriteSome();
  is_writing_ = false;
  output_.clear();
  if (!next_output_.empty()) return StartWrite(std::exchange(next_output_, {}), false);
  switch (phase_) {
    case Phase::kHandling:
      transport_->CancelTimer();
      return output_ends_answer_ ? EndExchange() : Pump();
    case Phase::kLingering:
      return Linger();
    default:
      return;
  }
}

void Connection::Linger() {
  if (at_end_) return Close();
  if (phase_ != Phase::kLingering) SetTimer(limits_.linger_timeout);
  phase_ = Phase::kLingering;
  if (host_->draining()->load()) SetTimer(std::min(limits_.linger_timeout, kDrainLinger));
  input_.clear();
  input_start_ = 0;
  transport_->ShutdownSend([self = shared_from_this()] {});
  Read();
}

// --- Time ----------------------------------------------------------------------------------

void Connection::SetTimer(Duration delay) {
  transport_->SetTimer(delay, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->OnTimer();
  });
}

void Connection::OnTimer() {
  switch (phase_) {
    case Phase::kHead:
      return Refuse({408, "header_timeout", "the request head did not arrive in time"});
    case Phase::kBody:
      return OnBodyTimer();
    case Phase::kHandling:  // A write that the peer does not take.
    case Phase::kStarting:
    case Phase::kIdle:
    case Phase::kLingering:
      return Close();
    case Phase::kClosed:
      return;
  }
}

void Connection::OnBodyTimer() {
  const double earned_s =
      static_cast<double>(parser_.body_received()) / std::max(1u, limits_.body_bytes_per_s);
  const Duration allowed = limits_.body_timeout + std::chrono::duration_cast<Duration>(
                                                      std::chrono::duration<double>(earned_s));
  const Duration left = allowed - (transport_->Now() - body_start_);
  if (left <= Duration::zero())
    return Refuse({408, "body_timeout", "the request body arrives too slowly"});
  SetTimer(left);
}

void Connection::LogAnswer(const char* outcome) const {
  if (!spdlog::should_log(spdlog::level::debug)) return;
  log::debug("net: {} {} {} {} bytes {:.1f} ms", log_line_, exchange_->status(), outcome,
             exchange_->body_bytes(), Seconds(transport_->Now() - request_start_) * 1e3);
}

}  // namespace tessera::net
