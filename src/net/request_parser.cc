// SPDX-License-Identifier: Apache-2.0
#include "net/request_parser.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/check.h"

namespace tessera::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

// "1\r\nx\r\n": the worst a well-meant chunking costs per byte. More is an attack by framing.
constexpr uint64_t kRawBytesPerBodyByte = 6;

HttpError BodyError(const boost::system::error_code& ec, const Limits& limits) {
  if (ec == http::error::body_limit || ec == http::error::buffer_overflow)
    return {413, "body_too_large",
            fmt::format("the body is larger than {} bytes", limits.body_bytes)};
  return {400, "invalid_body", fmt::format("the body is malformed: {}", ec.message())};
}

}  // namespace

struct RequestParser::Body {
  http::request_parser<http::string_body> parser;
};

RequestParser::RequestParser(const Limits& limits) : limits_(limits), scanner_(limits) {}
RequestParser::~RequestParser() = default;

size_t RequestParser::Refuse(HttpError error) {
  state_ = State::kFailed;
  error_ = std::move(error);
  body_.reset();
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
  if (auto error = ReadRequestHead(head, limits_, &request_, &framing_))
    return Refuse(std::move(*error));

  body_ = std::make_unique<Body>();
  auto& parser = body_->parser;
  parser.header_limit(limits_.header_bytes + 1);
  parser.body_limit(limits_.body_bytes);
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
    if (ec) return Refuse(BodyError(ec, limits_));
    if (taken == 0) break;
  }
  body_received_ += used;
  if (body_received_ > limits_.body_bytes * kRawBytesPerBodyByte + limits_.chunk_line_bytes)
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
  request.body = std::move(body_->parser.get().body());
  request_ = Request();
  framing_ = RequestFraming();
  scanner_.Reset();
  body_.reset();
  body_received_ = 0;
  chunks_.reset();
  chunks_ahead_ = 0;
  skipped_blank_line_ = false;
  state_ = State::kHead;
  return request;
}

}  // namespace tessera::net
