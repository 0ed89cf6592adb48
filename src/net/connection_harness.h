// SPDX-License-Identifier: Apache-2.0
//
// ConnectionHarness: a Connection over memory with a host that calls the handler at once, for tests
// and the fuzzer. One thread, manual time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/connection.h"
#include "net/memory_transport.h"

namespace tessera::net {

class ConnectionHarness final : public ConnectionHost {
 public:
  explicit ConnectionHarness(Handler handler, Limits limits = {}, BodyReceiverHook hook = {})
      : handler_(std::move(handler)), limits_(limits), body_receiver_hook_(std::move(hook)) {
    Connect();
  }
  ~ConnectionHarness() override {
    if (connection_) connection_->Close();
    link_->Run();
  }

  /// A new connection in place of the one before, which must be closed.
  void Connect() {
    link_ = std::make_shared<MemoryLink>();
    connection_ = std::make_shared<Connection>(MakeMemoryTransport(link_), this);
    connection_->Start();
    link_->Run();
  }
  /// Sends, runs, and returns all that was received since the last call.
  std::string Talk(std::string_view bytes) {
    link_->Send(bytes);
    return Receive();
  }
  std::string Receive() {
    link_->Run();
    return std::exchange(link_->received(), {});
  }
  void StartDrain() {
    draining_->store(true);
    if (const auto connection = connection_) connection->Drain();
    link_->Run();
  }

  MemoryLink& link() { return *link_; }
  Connection& connection() { return *connection_; }
  void set_overloaded(bool is_overloaded) { is_overloaded_ = is_overloaded; }

  const Limits& limits() const override { return limits_; }
  const ErrorHook& error_hook() const override { return error_hook_; }
  std::shared_ptr<const std::atomic<bool>> draining() const override { return draining_; }
  Counters& counters() override { return counters_; }
  const BodyReceiverHook& body_receiver_hook() const override { return body_receiver_hook_; }
  bool Dispatch(Request& request, const ResponseWriter& writer,
                std::shared_ptr<BodyReceiver> receiver) override {
    if (is_overloaded_) return false;
    if (receiver != nullptr)
      receiver->OnComplete(std::move(request), writer);
    else
      handler_(std::move(request), writer);
    return true;
  }
  void Closed(Connection*) override { connection_.reset(); }

 private:
  Handler handler_;
  Limits limits_;
  const BodyReceiverHook body_receiver_hook_;
  ErrorHook error_hook_ = DefaultErrorResponse;
  std::shared_ptr<std::atomic<bool>> draining_ = std::make_shared<std::atomic<bool>>(false);
  Counters counters_;
  bool is_overloaded_ = false;
  std::shared_ptr<MemoryLink> link_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace tessera::net
