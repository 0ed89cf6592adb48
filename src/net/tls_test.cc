// SPDX-License-Identifier: Apache-2.0
//
// The server over TLS, with a self-signed certificate made here and OpenSSL as the client.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "net/router.h"
#include "net/server.h"
#include "support/fixtures.h"

namespace tessera::net {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, Deleter<Free>>;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// A P-256 key and a certificate for it, valid for an hour, in `folder`.
TlsFiles MakeCertificate(const std::filesystem::path& folder) {
  const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
  const Owned<X509, X509_free> certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  EXPECT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);

  TlsFiles files{(folder / "cert.pem").string(), (folder / "key.pem").string()};
  const Owned<FILE, fclose> cert_file(fopen(files.certificate.c_str(), "w"));
  const Owned<FILE, fclose> key_file(fopen(files.key.c_str(), "w"));
  EXPECT_EQ(PEM_write_X509(cert_file.get(), certificate.get()), 1);
  EXPECT_EQ(PEM_write_PrivateKey(key_file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
            1);
  return files;
}

class TlsPeer {
 public:
  /// `own`: the certificate that it shows.
  TlsPeer(uint16_t port, const std::string& certificate, const TlsFiles* own = nullptr)
      : context_(SSL_CTX_new(TLS_client_method())), ssl_(nullptr) {
    SSL_CTX_load_verify_locations(context_.get(), certificate.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (own != nullptr) {
      SSL_CTX_use_certificate_file(context_.get(), own->certificate.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), own->key.c_str(), SSL_FILETYPE_PEM);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd_);
    is_connected_ = SSL_connect(ssl_.get()) == 1;
  }
  ~TlsPeer() { close(fd_); }
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;

  bool is_connected() const { return is_connected_; }
  /// The answer to one request; empty when the server did not want to talk.
  std::string Ask() {
    if (!is_connected_ || SSL_write(ssl_.get(), kGet.data(), static_cast<int>(kGet.size())) <= 0)
      return "";
    bool is_clean = false;
    return Receive(&is_clean);
  }
  void Send(std::string_view bytes) {
    EXPECT_EQ(SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }
  /// Until the server says goodbye; `is_clean` tells whether it did so properly.
  std::string Receive(bool* is_clean) {
    std::string all;
    char buffer[16384];
    int got = 0;
    while ((got = SSL_read(ssl_.get(), buffer, sizeof(buffer))) > 0)
      all.append(buffer, static_cast<size_t>(got));
    *is_clean = SSL_get_error(ssl_.get(), got) == SSL_ERROR_ZERO_RETURN;
    return all;
  }

 private:
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL, SSL_free> ssl_;
  int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool is_connected_ = false;
};

class TlsServer : public ::testing::Test {
 protected:
  std::unique_ptr<Server> Serve(Handler handler, Limits limits = {}) {
    auto server = Server::Start({.limits = limits, .tls = files_}, std::move(handler));
    EXPECT_TRUE(server.has_value()) << server.error().ToString();
    return std::move(*server);
  }

  testing::TempDir folder_;
  TlsFiles files_ = MakeCertificate(folder_.path());
};

void AnswerBig(const Request&, const ResponseWriter& writer) {
  (void)writer.Send(Response::Text(200, std::string(1u << 20, 'x') + "end"));
}

TEST_F(TlsServer, AnswersAndSaysGoodbye) {
  const auto server = Serve(AnswerBig);
  TlsPeer peer(server->port(), files_.certificate);
  ASSERT_TRUE(peer.is_connected());
  peer.Send(kGet);
  bool is_clean = false;
  const std::string reply = peer.Receive(&is_clean);
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(reply.ends_with("xend"));
  EXPECT_TRUE(is_clean);
}

TEST_F(TlsServer, NoticesADepartedPeer) {
  std::atomic<int> calls = 0;
  std::mutex mutex;
  std::optional<ResponseWriter> held;
  const auto server = Serve([&](const Request&, ResponseWriter writer) {
    writer.OnDisconnect([&] { ++calls; });
    const std::lock_guard lock(mutex);
    held.emplace(std::move(writer));
  });
  {
    TlsPeer peer(server->port(), files_.certificate);
    ASSERT_TRUE(peer.is_connected());
    peer.Send(kGet);
    while (server->stats().requests_open == 0) std::this_thread::yield();
  }
  while (server->stats().connections_open > 0) std::this_thread::yield();
  EXPECT_EQ(server->stats().disconnects, 1u);
}

TEST_F(TlsServer, PlainTextAndSilenceAreClosed) {
  const auto server = Serve(AnswerBig, Limits{.header_timeout = std::chrono::milliseconds(200)});
  for (const std::string_view bytes : {kGet, std::string_view()}) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    if (!bytes.empty()) {
      EXPECT_GT(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    }
    char buffer[4096];
    while (recv(fd, buffer, sizeof(buffer), 0) > 0) {
    }
    close(fd);
  }
  while (server->stats().connections_open > 0) std::this_thread::yield();
  EXPECT_EQ(server->stats().requests, 0u);
}

TEST_F(TlsServer, DrainsWithOpenConnections) {
  const auto server = Serve(AnswerBig);
  TlsPeer peer(server->port(), files_.certificate);
  ASSERT_TRUE(peer.is_connected());
  EXPECT_TRUE(server->Drain(std::chrono::seconds(5)).ok());
}

TEST_F(TlsServer, KeyThatDoesNotFitIsNamed) {
  const testing::TempDir other;
  const TlsFiles stranger = MakeCertificate(other.path());
  const auto server = Server::Start({.tls = TlsFiles{files_.certificate, stranger.key}}, AnswerBig);
  ASSERT_FALSE(server.has_value());
  EXPECT_THAT(server.error().ToString(), HasSubstr(stranger.key));
}

void AnswerBriefly(const Request&, const ResponseWriter& writer) {
  (void)writer.Send(Response::Text(200, "hello"));
}

TEST_F(TlsServer, WithAClientCaOnlyItsClientsGetIn) {
  const testing::TempDir mine, others;
  const TlsFiles client = MakeCertificate(mine.path()), stranger = MakeCertificate(others.path());
  files_.client_ca = client.certificate;
  const auto server = Serve(AnswerBriefly);
  EXPECT_THAT(TlsPeer(server->port(), files_.certificate, &client).Ask(), HasSubstr("hello"));
  EXPECT_EQ(TlsPeer(server->port(), files_.certificate).Ask(), "");
  EXPECT_EQ(TlsPeer(server->port(), files_.certificate, &stranger).Ask(), "");
  // Who they are is asked again: the stranger becomes the client.
  std::filesystem::copy_file(stranger.certificate, client.certificate,
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_TRUE(server->ReloadTls().ok());
  EXPECT_THAT(TlsPeer(server->port(), files_.certificate, &stranger).Ask(), HasSubstr("hello"));
}

TEST_F(TlsServer, AReloadIsForNewConnections) {
  const auto server = Serve(AnswerBriefly);
  TlsPeer before(server->port(), files_.certificate);
  ASSERT_TRUE(before.is_connected());
  MakeCertificate(folder_.path());  // Over the old one.
  EXPECT_FALSE(TlsPeer(server->port(), files_.certificate).is_connected()) << "not read yet";
  ASSERT_TRUE(server->ReloadTls().ok());
  EXPECT_THAT(TlsPeer(server->port(), files_.certificate).Ask(), HasSubstr("hello"));
  EXPECT_THAT(before.Ask(), HasSubstr("hello"));
}

TEST_F(TlsServer, ABadReloadChangesNothing) {
  const auto server = Serve(AnswerBriefly);
  const testing::TempDir copies;
  const std::string good = (copies.path() / "cert.pem").string();
  std::filesystem::copy_file(files_.certificate, good);
  for (const std::string& file : {files_.certificate, files_.key}) {
    const std::string bytes = testing::ReadAll(file);
    std::filesystem::resize_file(file, bytes.size() / 2);
    const Status status = server->ReloadTls();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.ToString(), HasSubstr(file));
    EXPECT_THAT(TlsPeer(server->port(), good).Ask(), HasSubstr("hello"));
    const Owned<FILE, fclose> out(fopen(file.c_str(), "w"));
    EXPECT_EQ(fwrite(bytes.data(), 1, bytes.size(), out.get()), bytes.size());
  }
}

TEST_F(TlsServer, WhatIsNoClientCaIsNamed) {
  for (const std::string& file : {files_.key, std::string("/no/such/ca.pem")}) {
    TlsFiles files = files_;
    files.client_ca = file;
    const auto server = Server::Start({.tls = files}, AnswerBriefly);
    ASSERT_FALSE(server.has_value());
    EXPECT_THAT(server.error().ToString(), HasSubstr(file));
  }
}

TEST_F(TlsServer, AKeyWithAPassphraseIsAnErrorNotAQuestion) {
  const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
  const Owned<FILE, fclose> file(fopen(files_.key.c_str(), "w"));
  unsigned char phrase[] = "secret";
  ASSERT_EQ(
      PEM_write_PrivateKey(file.get(), key.get(), EVP_aes_256_cbc(), phrase, 6, nullptr, nullptr),
      1);
  fflush(file.get());
  const auto server = Server::Start({.tls = files_}, AnswerBriefly);
  ASSERT_FALSE(server.has_value());
  EXPECT_THAT(server.error().ToString(), HasSubstr(files_.key));
}

}  // namespace
}  // namespace tessera::net
