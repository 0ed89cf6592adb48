// SPDX-License-Identifier: Apache-2.0
#include "net/response_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

namespace tessera::net {
namespace {

namespace http = boost::beast::http;

Status ToStatus(const boost::system::error_code& ec) {
  if (ec == http::error::body_limit || ec == http::error::header_limit)
    return ResourceExhausted("the answer is larger than this client takes: " + ec.message());
  return DataLoss("the answer is malformed: " + ec.message());
}

}  // namespace

struct ResponseParser::Impl {
  http::response_parser<http::string_body> parser;
};

ResponseParser::ResponseParser(bool is_head, uint32_t header_bytes_max, uint64_t body_bytes_max)
    : is_head_(is_head), header_bytes_max_(header_bytes_max), body_bytes_max_(body_bytes_max) {
  Restart();
}

ResponseParser::~ResponseParser() = default;

void ResponseParser::Restart() {
  impl_ = std::make_unique<Impl>();
  impl_->parser.header_limit(header_bytes_max_);
  impl_->parser.body_limit(body_bytes_max_);
  impl_->parser.eager(false);
  impl_->parser.skip(is_head_);
}

Result<ResponseParser::Piece> ResponseParser::Feed(std::string_view input) {
  auto& parser = impl_->parser;
  Piece piece;
  boost::system::error_code ec;
  piece.used = parser.put(boost::asio::buffer(input.data(), input.size()), ec);
  if (ec && ec != http::error::need_more) return Fail(ToStatus(ec));
  if (!has_head_ && parser.is_header_done()) {
    if (parser.get().result_int() / 100 == 1) {
      Restart();
      return piece;
    }
    has_head_ = piece.has_head = true;
    head_.status = static_cast<int>(parser.get().result_int());
    for (const auto& field : parser.get()) head_.headers.Add(field.name_string(), field.value());
  }
  piece.body = std::exchange(parser.get().body(), {});
  return piece;
}

Status ResponseParser::FeedEnd() {
  boost::system::error_code ec;
  if (!has_head_) return DataLoss("the peer closed the connection before it answered");
  impl_->parser.put_eof(ec);
  if (ec) return DataLoss("the peer closed the connection in the middle of its answer");
  return {};
}

bool ResponseParser::is_done() const {
  return impl_->parser.is_done();
}
bool ResponseParser::keeps_alive() const {
  return impl_->parser.keep_alive();
}

}  // namespace tessera::net
