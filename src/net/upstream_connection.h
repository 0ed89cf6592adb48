// SPDX-License-Identifier: Apache-2.0
//
// UpstreamConnection: one connection to a server, one call at a time: the logic of upstream.h over
// a Transport, without sockets. Belongs to its loop's thread; keeps itself alive while a call runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/response_parser.h"
#include "net/transport.h"
#include "net/upstream.h"

namespace tessera::net {

class UpstreamConnection : public std::enable_shared_from_this<UpstreamConnection> {
 public:
  /// What is left of a call when it is over.
  struct Outcome {
    UpstreamEnd end;
    bool got_bytes = false;  // Of the answer.
    bool is_reusable = false;
  };
  using Done = std::function<void(const Outcome& outcome)>;

  UpstreamConnection(std::unique_ptr<Transport> transport, const UpstreamOptions& options);

  /// Sends and reads the answer; `done` is called last, once, in place of OnEnd. Requires that no
  /// call runs. `bytes` must live until `done`.
  void Begin(const std::string& bytes, bool is_head, std::shared_ptr<UpstreamListener> listener,
             Done done);
  /// Ends a running call with kCancelled.
  void Cancel();
  void Close();

  TimePoint Now() const { return transport_->Now(); }

 private:
  void WriteRest();
  void ReadMore();
  void OnRead(const Status& status, size_t bytes);
  /// False: the call is over.
  bool Deliver(std::string_view input);
  void AskForRoom();
  void ArmTimer();
  void End(Status status);

  const std::unique_ptr<Transport> transport_;
  const UpstreamOptions& options_;
  std::vector<char> buffer_;

  // Of the running call.
  std::string_view unsent_;
  std::shared_ptr<UpstreamListener> listener_;
  Done done_;
  std::optional<ResponseParser> parser_;
  std::string input_;  // Received and not yet used by the parser.
  bool was_sent_ = false;
  bool got_bytes_ = false;
  bool is_writing_ = false;
  uint64_t call_ = 0;  // Completions of an earlier call are told by it.
};

}  // namespace tessera::net
