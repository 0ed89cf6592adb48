// SPDX-License-Identifier: Apache-2.0
#include "net/stream_transport.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <type_traits>
#include <utility>

#include "net/endpoint_name.h"

namespace tessera::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Socket = asio::ip::tcp::socket;
using TlsStream = asio::ssl::stream<Socket>;

bool IsEndOfInput(const error_code& ec) {
  // A TLS peer that closes without saying so ends the input too: HTTP's own framing finds
  // truncation.
  return ec == asio::error::eof || ec == asio::ssl::error::stream_truncated;
}

Status ToStatus(const error_code& ec) {
  if (!ec) return {};
  if (ec == asio::error::operation_aborted) return Cancelled("the connection was closed");
  return Unavailable(ec.message());
}

/// SO_NODELAY: a token must not wait for the next one. Failure costs latency only.
void SetNoDelay(Socket& socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
}

template <class Stream>
class StreamTransport final : public Transport {
  static constexpr bool kIsTls = std::is_same_v<Stream, TlsStream>;

 public:
  template <class... Args>
  explicit StreamTransport(Socket socket, Args&... args)
      : stream_(std::move(socket), args...), timer_(stream_.get_executor()) {
    error_code ec;
    peer_ = EndpointName(lowest().remote_endpoint(ec));
    SetNoDelay(lowest());
  }

  void Start(std::function<void(Status)> done) override {
    if constexpr (kIsTls) {
      stream_.async_handshake(
          asio::ssl::stream_base::server,
          [done = std::move(done)](const error_code& ec) { done(ToStatus(ec)); });
    } else {
      Post([done = std::move(done)] { done(Status()); });
    }
  }

  void Read(std::span<char> into, IoDone done) override {
    stream_.async_read_some(asio::buffer(into.data(), into.size()),
                            [done = std::move(done)](const error_code& ec, size_t bytes) {
                              if (IsEndOfInput(ec)) return done(Status(), 0);
                              done(ToStatus(ec), bytes);
                            });
  }

  void Write(std::string_view bytes, IoDone done) override {
    stream_.async_write_some(asio::buffer(bytes.data(), bytes.size()),
                             [done = std::move(done)](const error_code& ec, size_t written) {
                               done(ToStatus(ec), written);
                             });
  }

  void ShutdownSend(std::function<void()> done) override {
    if constexpr (kIsTls) {
      // Sends close_notify; its own wait for the peer's ends with Close.
      stream_.async_shutdown([done = std::move(done)](const error_code&) { done(); });
    } else {
      error_code ignored;
      lowest().shutdown(Socket::shutdown_send, ignored);
    }
  }

  void Close() override {
    error_code ignored;
    lowest().close(ignored);
  }

  void SetTimer(Duration delay, std::function<void()> fire) override {
    timer_.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(delay));
    // A timer that expired just before it was replaced still completes without an error: the
    // number tells that it is stale.
    timer_.async_wait([this, number = ++timer_number_, alive = std::weak_ptr<int>(alive_),
                       fire = std::move(fire)](const error_code& ec) {
      if (!ec && alive.lock() && number == timer_number_) fire();
    });
  }
  void CancelTimer() override {
    ++timer_number_;
    timer_.cancel();
  }
  TimePoint Now() const override { return Clock::Real().Now(); }

  void Post(std::function<void()> task) override {
    asio::post(stream_.get_executor(), std::move(task));
  }
  std::string peer() const override { return peer_; }

 private:
  Socket& lowest() {
    if constexpr (kIsTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  Stream stream_;
  asio::steady_timer timer_;
  uint64_t timer_number_ = 0;
  std::string peer_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<Transport> MakeTcpTransport(Socket socket) {
  return std::make_unique<StreamTransport<Socket>>(std::move(socket));
}

std::unique_ptr<Transport> MakeTlsTransport(Socket socket,
                                            std::shared_ptr<asio::ssl::context> context) {
  // OpenSSL counts its references: the stream keeps what it needs of the context.
  return std::make_unique<StreamTransport<TlsStream>>(std::move(socket), *context);
}

namespace {

/// Certificates without a client's are refused in the handshake.
Status AskForClientCertificates(const std::string& file, asio::ssl::context* context) {
  error_code ec;
  context->load_verify_file(file, ec);
  // Names that clients are told, so that they know which certificate to show.
  STACK_OF(X509_NAME)* const names = ec ? nullptr : SSL_load_client_CA_file(file.c_str());
  if (names == nullptr) {
    ERR_clear_error();
    return InvalidArgument(fmt::format("{}: not a readable PEM file of CA certificates{}", file,
                                       ec ? ": " + ec.message() : ""));
  }
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_client_CA_list(native, names);
  context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, ec);
  if (ec) return Internal("TLS set-up: " + ec.message());
  // Without a name of their own, sessions of verified clients could not be resumed.
  constexpr std::string_view kName = "tessera";
  SSL_CTX_set_session_id_context(native, reinterpret_cast<const unsigned char*>(kName.data()),
                                 static_cast<unsigned>(kName.size()));
  return {};
}

}  // namespace

Result<std::shared_ptr<asio::ssl::context>> MakeTlsContext(const TlsFiles& files) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code ec;
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                           asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                           asio::ssl::context::no_tlsv1_1,
                       ec);
  if (ec) return Fail(Internal("TLS set-up: " + ec.message()));
  // OpenSSL would ask the terminal, on whatever thread this is.
  context->set_password_callback(
      [](size_t, asio::ssl::context::password_purpose) { return std::string(); }, ec);
  context->use_certificate_chain_file(files.certificate, ec);
  if (ec)
    return Fail(InvalidArgument(fmt::format("{}: not a readable PEM certificate chain: {}",
                                            files.certificate, ec.message())));
  context->use_private_key_file(files.key, asio::ssl::context::pem, ec);
  if (ec)
    return Fail(
        InvalidArgument(fmt::format("{}: not a readable PEM key of {} (without a passphrase): {}",
                                    files.key, files.certificate, ec.message())));
  if (!files.client_ca.empty())
    TESSERA_RETURN_IF_ERROR(AskForClientCertificates(files.client_ca, context.get()));
  return context;
}

}  // namespace tessera::net
