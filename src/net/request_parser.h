// SPDX-License-Identifier: Apache-2.0
//
// RequestParser: bytes in any split -> requests. The head is read strictly by request_head.h, the
// framing of a chunked body by chunk_scanner.h; then, as a second opinion, Boost.Beast reads both
// and decodes the body. What the two read differently is refused. Trailers are read and dropped.
// A body with a receiver is handed to it piece by piece and not kept.
// One thread; owned by a connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "net/body_receiver.h"
#include "net/chunk_scanner.h"
#include "net/errors.h"
#include "net/http.h"
#include "net/limits.h"
#include "net/request_head.h"

namespace tessera::net {

class RequestParser {
 public:
  enum class State : uint8_t {
    kHead,    // Waiting for the rest of a head.
    kBody,    // Head known, waiting for the rest of the body.
    kDone,    // Take() is due.
    kFailed,  // error() says why; nothing more can be read from this connection.
  };

  /// `hook` may be empty, and must outlive the parser.
  explicit RequestParser(const Limits& limits, const BodyReceiverHook& hook);
  ~RequestParser();

  /// Offers everything received and not yet consumed; returns how much was consumed from the
  /// front. Stops at the end of the head (so that the caller may look at framing()) and at the end
  /// of the message. After 0 with state kHead or kBody: offer again with more bytes appended.
  size_t Feed(std::string_view input);

  State state() const { return state_; }
  /// True once a byte of a head was seen and until Take.
  bool has_begun() const { return state_ != State::kHead || scanner_.scanned() > 0; }
  const RequestFraming& framing() const { return framing_; }  // Requires kBody or kDone.
  const HttpError& error() const { return error_; }           // Requires kFailed.
  /// Raw bytes of the body so far.
  uint64_t body_received() const { return body_received_; }
  /// For logs and for the answer to a failed body: method of the head, empty before.
  const std::string& method() const { return request_.method; }

  bool has_receiver() const { return receiver_ != nullptr; }
  /// Who got the body, or null. Before Take. Requires kDone.
  std::shared_ptr<BodyReceiver> TakeReceiver() { return std::move(receiver_); }
  /// The message; the parser is ready for the next one. Requires kDone.
  Request Take();

 private:
  struct Body;  // Beast's parser.

  size_t FeedHead(std::string_view input);
  size_t FeedBody(std::string_view input);
  /// How much of `input` may be given to Beast, after the strict check; or state_ is kFailed.
  size_t CheckChunks(std::string_view input);
  size_t Refuse(HttpError error);
  /// Asks the hook, then whether the announced body may be so long.
  std::optional<HttpError> PlanBody();
  HttpError BodyError(bool is_too_large, std::string_view what) const;
  /// What Beast decoded goes on to the receiver.
  std::optional<HttpError> GiveToReceiver();

  Limits limits_;
  const BodyReceiverHook& hook_;
  State state_ = State::kHead;
  HeadScanner scanner_;
  Request request_;
  RequestFraming framing_;
  HttpError error_;
  uint64_t body_bytes_max_ = 0;
  std::shared_ptr<BodyReceiver> receiver_;
  uint64_t body_received_ = 0;
  std::optional<ChunkScanner> chunks_;  // Of a chunked body.
  size_t chunks_ahead_ = 0;             // Bytes it has seen and Beast has not consumed.
  bool skipped_blank_line_ = false;
  std::unique_ptr<Body> body_;
};

}  // namespace tessera::net
