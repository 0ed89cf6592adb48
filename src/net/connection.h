// SPDX-License-Identifier: Apache-2.0
//
// Connection: the life of one accepted connection: read a request, give it to the host, send the
// answer, and so on in order, under the times and sizes of limits.h. Pure logic over a Transport;
// it owns the transport and lives on that transport's loop thread. Pending operations hold it
// alive; after Close it dies with the last of them.
//
// Phases: Starting -> Idle -> Head -> Body -> Handling -> Idle ... -> Lingering -> Closed.
// A read is pending in every phase, except while pipelined bytes fill the buffer during Handling:
// then a departed peer is noticed at the next write only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/body_receiver.h"
#include "net/errors.h"
#include "net/exchange.h"
#include "net/limits.h"
#include "net/request_parser.h"
#include "net/response_writer.h"
#include "net/transport.h"

namespace tessera::net {

class Connection;

/// Counters that all connections of a server share. Thread-safe.
struct Counters {
  std::atomic<uint64_t> accepted{0}, refused{0}, open{0}, requests{0}, requests_open{0},
      disconnects{0}, body_bytes{0};
};

/// What a connection needs from its server. Called on the connection's loop thread.
class ConnectionHost {
 public:
  virtual ~ConnectionHost() = default;
  virtual const Limits& limits() const = 0;
  virtual const ErrorHook& error_hook() const = 0;
  virtual const BodyReceiverHook& body_receiver_hook() const = 0;
  virtual std::shared_ptr<const std::atomic<bool>> draining() const = 0;
  virtual Counters& counters() = 0;
  /// To `receiver`, or to the handler where it is null. False when too many requests wait for a
  /// worker; then the writer was not used.
  virtual bool Dispatch(Request& request, const ResponseWriter& writer,
                        std::shared_ptr<BodyReceiver> receiver) = 0;
  /// The connection is closed; called once.
  virtual void Closed(Connection* connection) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// `host` must outlive the call of its Closed.
  Connection(std::unique_ptr<Transport> transport, ConnectionHost* host);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();
  /// Instead of Start: says 503 and closes.
  void StartRefused();
  /// Closes if nothing has begun; otherwise the answer under way is the last one.
  void Drain();
  /// Ends it now; an open request sees a disconnect.
  void Close();

 private:
  enum class Phase : uint8_t { kStarting, kIdle, kHead, kBody, kHandling, kLingering, kClosed };

  void OnStarted(const Status& status, bool is_refused);
  void Read();
  void OnRead(const Status& status, size_t bytes);
  void OnEndOfInput();
  void Advance();
  void ConsumeInput(size_t bytes);
  void BeginHead();
  void BeginBody();
  bool ReserveBody();
  void ReleaseBody();
  void BeginRequest();
  void Pump();
  void EndExchange();
  void Refuse(const HttpError& error);
  void StartWrite(std::string bytes, bool of_exchange);
  void WriteSome();
  void OnWritten(const Status& status, size_t bytes);
  void Linger();
  void SetTimer(Duration delay);
  void OnTimer();
  void OnBodyTimer();
  void LogAnswer(const char* outcome) const;

  std::string_view input() const { return std::string_view(input_).substr(input_start_); }

  std::unique_ptr<Transport> transport_;
  ConnectionHost* host_;
  const Limits& limits_;
  Phase phase_ = Phase::kStarting;
  bool is_first_request_ = true;

  RequestParser parser_;
  std::vector<char> read_buffer_;
  std::string input_;  // Received; the first input_start_ bytes are consumed.
  size_t input_start_ = 0;
  bool is_reading_ = false;
  bool at_end_ = false;  // The peer sends no more.
  uint64_t body_reserved_ = 0;
  TimePoint body_start_;

  std::string output_;  // Being written; the first output_start_ bytes are gone.
  size_t output_start_ = 0;
  std::string next_output_;  // To be written after it; see Refuse.
  bool is_writing_ = false;
  bool output_is_exchange_ = false;
  bool output_ends_answer_ = false;

  std::shared_ptr<Exchange> exchange_;  // The request being handled.
  std::string log_line_;                // Method and path of it.
  TimePoint request_start_;
};

}  // namespace tessera::net
