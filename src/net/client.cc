// SPDX-License-Identifier: Apache-2.0
#include "net/client.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "net/response_parser.h"
#include "net/socket.h"

namespace tessera::net {
namespace {

constexpr size_t kReceiveBytes = 64u << 10;

}  // namespace

class HttpClient::Impl {
 public:
  explicit Impl(ClientOptions options)
      : options_(std::move(options)),
        cancel_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        socket_(cancel_fd_),
        buffer_(kReceiveBytes) {
    TESSERA_CHECK(cancel_fd_ >= 0);
  }
  ~Impl() {
    socket_.Close();
    close(cancel_fd_);
  }

  Result<Response> Run(const ClientRequest& request, const OnHead& on_head, const OnBody& on_body);
  void Cancel() { (void)eventfd_write(cancel_fd_, 1); }

 private:
  /// `got_bytes` tells whether anything of the answer arrived: before that a retry is safe on a
  /// connection that was kept open.
  Result<Response> Exchange(const ClientRequest& request, const OnHead& on_head,
                            const OnBody& on_body, bool* got_bytes);
  Status Deliver(ResponseParser& parser, std::string& input, const OnHead& on_head,
                 const OnBody& on_body);

  const ClientOptions options_;
  const int cancel_fd_;
  ClientSocket socket_;
  std::vector<char> buffer_;
};

Status HttpClient::Impl::Deliver(ResponseParser& parser, std::string& input, const OnHead& on_head,
                                 const OnBody& on_body) {
  while (!input.empty() && !parser.is_done()) {
    TESSERA_ASSIGN_OR_RETURN(const ResponseParser::Piece piece, parser.Feed(input));
    input.erase(0, piece.used);
    if (piece.has_head && on_head && !on_head(parser.head()))
      return Cancelled("the answer's head was declined");
    if (!piece.body.empty() && !on_body(piece.body))
      return Cancelled("the answer's body was declined");
    if (piece.used == 0) return {};
  }
  return {};
}

Result<Response> HttpClient::Impl::Exchange(const ClientRequest& request, const OnHead& on_head,
                                            const OnBody& on_body, bool* got_bytes) {
  if (!socket_.is_open())
    TESSERA_RETURN_IF_ERROR(
        socket_.Connect(options_.host, options_.port, options_.connect_timeout));
  // A server may answer and close before it took the whole body (413): what it said counts.
  const Status sent = socket_.SendAll(SerializeRequest(request, options_.host, options_.port),
                                      options_.idle_timeout);
  if (!sent.ok() && sent.code() != Code::kUnavailable) return Fail(sent);
  ResponseParser parser(request.method == "HEAD", options_.header_bytes_max,
                        options_.body_bytes_max);
  std::string input;
  while (!parser.is_done()) {
    const Result<size_t> received = socket_.Receive(buffer_, options_.idle_timeout);
    if (!received) return Fail(sent.ok() ? received.error() : sent);
    if (*received == 0) {
      if (!*got_bytes) return Fail(Unavailable("the peer closed the connection without an answer"));
      TESSERA_RETURN_IF_ERROR(parser.FeedEnd());
      break;
    }
    *got_bytes = true;
    input.append(buffer_.data(), *received);
    TESSERA_RETURN_IF_ERROR(Deliver(parser, input, on_head, on_body));
  }
  if (!parser.keeps_alive() || !sent.ok() || !input.empty()) socket_.Close();
  return parser.head();
}

Result<Response> HttpClient::Impl::Run(const ClientRequest& request, const OnHead& on_head,
                                       const OnBody& on_body) {
  TESSERA_RETURN_IF_ERROR(CheckRequest(request));
  const bool was_open = socket_.is_open();
  bool got_bytes = false;
  Result<Response> response = Exchange(request, on_head, on_body, &got_bytes);
  if (!response) socket_.Close();
  if (!response && was_open && !got_bytes && response.error().code() == Code::kUnavailable) {
    response = Exchange(request, on_head, on_body, &got_bytes);
    if (!response) socket_.Close();
  }
  return response;
}

HttpClient::HttpClient(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
HttpClient::~HttpClient() = default;

Result<Response> HttpClient::Call(const ClientRequest& request) {
  std::string body;
  Result<Response> response = impl_->Run(request, nullptr, [&](std::string_view bytes) {
    body += bytes;
    return true;
  });
  if (response) response->body = std::move(body);
  return response;
}

Result<Response> HttpClient::Stream(const ClientRequest& request, const OnHead& on_head,
                                    const OnBody& on_body) {
  return impl_->Run(request, on_head, on_body);
}

void HttpClient::Cancel() {
  impl_->Cancel();
}

}  // namespace tessera::net
