// SPDX-License-Identifier: Apache-2.0
#include "net/upstream_connection.h"

#include <utility>

#include "base/check.h"

namespace tessera::net {
namespace {

constexpr size_t kReceiveBytes = 16u << 10;
constexpr auto kRoomPoll = std::chrono::milliseconds(5);

}  // namespace

UpstreamConnection::UpstreamConnection(std::unique_ptr<Transport> transport,
                                       const UpstreamOptions& options)
    : transport_(std::move(transport)), options_(options), buffer_(kReceiveBytes) {}

void UpstreamConnection::Begin(const std::string& bytes, bool is_head,
                               std::shared_ptr<UpstreamListener> listener, Done done) {
  TESSERA_CHECK(!done_ && !is_writing_);
  ++call_;
  unsent_ = bytes;
  listener_ = std::move(listener);
  done_ = std::move(done);
  parser_.emplace(is_head, options_.header_bytes_max, options_.body_bytes_max);
  input_.clear();
  was_sent_ = got_bytes_ = false;
  ArmTimer();
  WriteRest();
  ReadMore();  // Meanwhile: a server may refuse a request before it has all of it.
}

void UpstreamConnection::WriteRest() {
  is_writing_ = true;
  transport_->Write(unsent_,
                    [self = shared_from_this(), call = call_](const Status& status, size_t bytes) {
                      self->is_writing_ = false;
                      if (call != self->call_ || !self->done_) return;
                      if (bytes > 0) self->was_sent_ = true;
                      // What the server said before it closed is still to be read; the read finds
                      // the end.
                      if (!status.ok()) return;
                      self->unsent_.remove_prefix(bytes);
                      if (!self->unsent_.empty()) self->WriteRest();
                    });
}

void UpstreamConnection::ReadMore() {
  transport_->Read(buffer_,
                   [self = shared_from_this(), call = call_](const Status& status, size_t bytes) {
                     if (call == self->call_ && self->done_) self->OnRead(status, bytes);
                   });
}

void UpstreamConnection::OnRead(const Status& status, size_t bytes) {
  if (!status.ok()) return End(status);
  if (bytes == 0) {
    if (!got_bytes_) return End(Unavailable("the server closed the connection"));
    const Status end = parser_->FeedEnd();
    return End(end);
  }
  got_bytes_ = true;
  if (!Deliver({buffer_.data(), bytes})) return;
  ArmTimer();
  listener_->HasRoom() ? ReadMore() : AskForRoom();
}

bool UpstreamConnection::Deliver(std::string_view input) {
  // Most reads leave nothing behind, so that most bytes are never copied here.
  const bool is_joined = !input_.empty();
  if (is_joined) input_.append(input);
  std::string_view rest = is_joined ? std::string_view(input_) : input;
  while (true) {
    auto piece = parser_->Feed(rest);
    if (!piece.has_value()) {
      End(piece.error());
      return false;
    }
    rest.remove_prefix(piece->used);
    if (piece->has_head) listener_->OnHead(parser_->head());
    if (!piece->body.empty()) listener_->OnBody(piece->body);
    if (!done_) return false;  // A listener cancelled.
    if (parser_->is_done()) {
      End({});
      return false;
    }
    if (piece->used == 0 && piece->body.empty()) break;
  }
  input_ = std::string(rest);
  return true;
}

void UpstreamConnection::AskForRoom() {
  transport_->SetTimer(kRoomPoll, [self = shared_from_this(), call = call_] {
    if (call != self->call_ || !self->done_) return;
    if (!self->listener_->HasRoom()) return self->AskForRoom();
    self->ArmTimer();
    self->ReadMore();
  });
}

void UpstreamConnection::ArmTimer() {
  transport_->SetTimer(options_.idle_timeout, [self = shared_from_this(), call = call_] {
    if (call == self->call_ && self->done_)
      self->End(DeadlineExceeded("the server sent nothing for too long"));
  });
}

void UpstreamConnection::End(Status status) {
  Outcome outcome{.end = {std::move(status), was_sent_}, .got_bytes = got_bytes_};
  outcome.is_reusable = outcome.end.status.ok() && unsent_.empty() && !is_writing_ &&
                        parser_->is_done() && parser_->keeps_alive();
  transport_->CancelTimer();
  if (!outcome.is_reusable) transport_->Close();
  ++call_;
  listener_ = nullptr;
  std::exchange(done_, nullptr)(outcome);
}

void UpstreamConnection::Cancel() {
  if (done_) End(Cancelled("the call was cancelled"));
}

void UpstreamConnection::Close() {
  transport_->Close();
}

}  // namespace tessera::net
