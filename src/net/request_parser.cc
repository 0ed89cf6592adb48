// SPDX-License-Identifier: Apache-2.0
#include "net/request_parser.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/optional/optional.hpp>

#include "base/check.h"

namespace tessera::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

// "1\r\nx\r\n": the worst a well-meant chunking costs per byte. More is an attack by framing.
constexpr uint64_t kRawBytesPerBodyByte = 6;

/// Beast's string_body, but for one thing: no memory is reserved for a body that is only passed on.
struct DecodedBody {
  struct value_type {
    std::string bytes;
    bool is_passed_on = false;
  };
  class reader {
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>& /*header*/, value_type& body) : body_(body) {}
    void init(const boost::optional<uint64_t>& length, boost::system::error_code& ec) {
      if (length && !body_.is_passed_on) body_.bytes.reserve(*length);
      ec = {};
    }
    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& ec) {
      size_t added = 0;
      for (const asio::const_buffer buffer : boost::beast::buffers_range_ref(buffers)) {
        body_.bytes.append(static_cast<const char*>(buffer.data()), buffer.size());
        added += buffer.size();
      }
      ec = {};
      return added;
    }
    void finish(boost::system::error_code& ec) { ec = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace

struct RequestParser::Body {
  http::request_parser<DecodedBody> parser;
};

RequestParser::RequestParser(const Limits& limits, const BodyReceiverHook& hook)
    : limits_(limits), hook_(hook), scanner_(limits) {}
RequestParser::~RequestParser() = default;

HttpError RequestParser::BodyError(bool is_too_large, std::string_view what) const {
  if (is_too_large)
    return {413, "body_too_large",
            fmt::format("the body is larger than {} bytes", body_bytes_max_)};
  return {400, "invalid_body", fmt::format("the body is malformed: {}", what)};
}

std::optional<HttpError> RequestParser::PlanBody() {
  body_bytes_max_ = limits_.body_bytes;
  if (hook_ && (framing_.is_chunked || framing_.content_length.value_or(0) > 0)) {
    auto plan = hook_(request_);
    if (!plan.has_value()) return std::move(plan).error();
    receiver_ = std::move(plan->receiver);
    if (receiver_ != nullptr) body_bytes_max_ = plan->bytes_max;
  }
  if (framing_.content_length.value_or(0) > body_bytes_max_)
    return BodyError(/*is_too_large=*/true, {});
  return std::nullopt;
}

std::optional<HttpError> RequestParser::GiveToReceiver() {
  std::string& bytes = body_->parser.get().body().bytes;
  if (receiver_ == nullptr || bytes.empty()) return std::nullopt;
  auto error = receiver_->OnBytes(bytes);
  bytes.clear();
  return error;
}

size_t RequestParser::Refuse(HttpError error) {
  state_ = State::kFailed;
  error_ = std::move(error);
  body_.reset();
  receiver_.reset();
  return 0;
}

size_t RequestParser::Feed(std::string_view input) {
  switch (state_) {
    case State::kHead:
      return FeedHead(input);
    case State::kBody:
      return FeedBody(input);
    case State::kDone:
    case State::kFailed:
      return 0;
  }
  return 0;
}

size_t RequestParser::FeedHead(std::string_view input) {
  // RFC 9112 section 2.2: one empty line before a request is forgiven (old clients after a POST).
  if (!skipped_blank_line_ && scanner_.scanned() == 0) {
    if (input == "\r") return 0;
    if (input.starts_with("\r\n")) {
      skipped_blank_line_ = true;
      return 2;
    }
  }
  const auto scanned = scanner_.Scan(input);
  if (!scanned) return Refuse(scanned.error());
  if (*scanned == 0) return 0;
  const std::string_view head = input.substr(0, *scanned);
  // The body's limit is known only when its receiver is.
  Limits of_head = limits_;
  if (hook_) of_head.body_bytes = UINT64_MAX;
  if (auto error = ReadRequestHead(head, of_head, &request_, &framing_))
    return Refuse(std::move(*error));
  if (auto error = PlanBody()) return Refuse(std::move(*error));

  body_ = std::make_unique<Body>();
  auto& parser = body_->parser;
  parser.header_limit(limits_.header_bytes + 1);
  parser.body_limit(body_bytes_max_);
  parser.get().body().is_passed_on = has_receiver();
  parser.eager(false);
  boost::system::error_code ec;
  const size_t used = parser.put(asio::buffer(head.data(), head.size()), ec);
  const bool agrees =
      !ec && used == head.size() && parser.is_header_done() &&
      parser.chunked() == framing_.is_chunked &&
      parser.is_done() == (!framing_.is_chunked && framing_.content_length.value_or(0) == 0);
  if (!agrees)
    return Refuse(
        {400, "invalid_header",
         ec ? "the request head is malformed: " + ec.message() : "the request head is ambiguous"});
  state_ = parser.is_done() ? State::kDone : State::kBody;
  if (framing_.is_chunked) chunks_.emplace(limits_.chunk_line_bytes);
  return head.size();
}

size_t RequestParser::CheckChunks(std::string_view input) {
  const auto good = chunks_->Scan(input.substr(chunks_ahead_));
  if (!good) return Refuse(good.error());
  chunks_ahead_ += *good;
  return chunks_ahead_;
}

size_t RequestParser::FeedBody(std::string_view input) {
  auto& parser = body_->parser;
  size_t used = 0;
  if (chunks_) {
    input = input.substr(0, CheckChunks(input));
    if (state_ == State::kFailed) return 0;
    // Beast 1.81 asserts (basic_parser.ipp, "n >= 5") when a last chunk comes in small pieces.
    if (chunks_->is_in_trailers()) return 0;
  }
  while (used < input.size() && !parser.is_done()) {
    boost::system::error_code ec;
    const size_t taken = parser.put(asio::buffer(input.data() + used, input.size() - used), ec);
    used += taken;
    if (ec == http::error::need_more) break;
    if (ec)
      return Refuse(BodyError(ec == http::error::body_limit || ec == http::error::buffer_overflow,
                              ec.message()));
    if (taken == 0) break;
  }
  body_received_ += used;
  if (auto error = GiveToReceiver()) return Refuse(std::move(*error));
  if (body_received_ > limits_.chunk_line_bytes &&
      (body_received_ - limits_.chunk_line_bytes - 1) / kRawBytesPerBodyByte >= body_bytes_max_)
    return Refuse({413, "body_too_large", "the chunk framing is larger than the body may be"});
  if (chunks_) {
    chunks_ahead_ -= used;
    if (parser.is_done() != chunks_->is_done() || (parser.is_done() && chunks_ahead_ > 0))
      return Refuse({400, "invalid_body", "the chunked body is ambiguous"});
  }
  if (parser.is_done()) state_ = State::kDone;
  return used;
}

Request RequestParser::Take() {
  TESSERA_CHECK(state_ == State::kDone);
  Request request = std::move(request_);
  request.body = std::move(body_->parser.get().body().bytes);
  request_ = Request();
  framing_ = RequestFraming();
  scanner_.Reset();
  body_.reset();
  receiver_.reset();
  body_received_ = 0;
  chunks_.reset();
  chunks_ahead_ = 0;
  skipped_blank_line_ = false;
  state_ = State::kHead;
  return request;
}

}  // namespace tessera::net
