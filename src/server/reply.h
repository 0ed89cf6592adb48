// SPDX-License-Identifier: Apache-2.0
//
// Reply: a ResponseWriter that adds the headers every answer of ours carries (X-Request-Id, CORS,
// what the caller's key has left), knows for whom the answer is, and tells the request's scope what
// became of it. Same rules: copyable, any thread, nothing blocks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/http.h"
#include "net/response_writer.h"
#include "server/access/caller.h"
#include "server/request_record.h"

namespace tessera::server {

class Reply {
 public:
  /// `scope` may be null.
  Reply(net::ResponseWriter writer, net::Headers common, Caller caller = {},
        std::shared_ptr<RequestScope> scope = nullptr)
      : writer_(std::move(writer)),
        common_(std::move(common)),
        caller_(std::move(caller)),
        scope_(std::move(scope)) {}

  const Caller& caller() const { return caller_; }

  /// Its X-Request-Id.
  std::string request_id() const { return std::string(common_.Find("x-request-id").value_or("")); }

  /// What is known of the request; null where nobody keeps it.
  const std::shared_ptr<RequestScope>& scope() const { return scope_; }

  /// What a 429 of this call is to say in Retry-After, whatever dialect writes it. Before Send, on
  /// the same thread; shared by copies.
  void SetRetryAfter(std::chrono::seconds seconds) const { *retry_after_ = seconds; }

  Status Send(net::Response response) const {
    if (response.status == 429 && *retry_after_ > std::chrono::seconds(0))
      response.headers.Set("Retry-After", std::to_string(retry_after_->count()));
    AddCommon(&response.headers);
    const int status = response.status;
    return Note(writer_.Send(std::move(response)), status, /*is_last=*/true);
  }
  Status StartStream(int status, net::Headers headers) const {
    AddCommon(&headers);
    return Note(writer_.StartStream(status, std::move(headers)), status, /*is_last=*/false);
  }
  Status Write(std::string_view bytes) const { return writer_.Write(bytes); }
  Status Finish() const { return Note(writer_.Finish(), /*status=*/0, /*is_last=*/true); }
  bool disconnected() const { return writer_.disconnected(); }
  void OnDisconnect(std::function<void()> callback) const {
    writer_.OnDisconnect(std::move(callback));
  }

 private:
  void AddCommon(net::Headers* headers) const {
    for (const auto& [name, value] : common_) headers->Set(name, value);
    if (caller_.usage != nullptr) caller_.usage->AddHeaders(headers);
  }

  /// After a call that begins an answer with `status` (0: begun before) or ends it.
  Status Note(Status done, int status, bool is_last) const {
    if (scope_ == nullptr) return done;
    if (done.ok() && status != 0) scope_->Begin(status);
    if (done.ok() && is_last) scope_->End();
    if (done.code() == Code::kCancelled && is_last) scope_->EndCut();
    return done;
  }

  net::ResponseWriter writer_;
  net::Headers common_;
  Caller caller_;
  std::shared_ptr<std::chrono::seconds> retry_after_ = std::make_shared<std::chrono::seconds>(0);
  std::shared_ptr<RequestScope> scope_;
};

}  // namespace tessera::server
