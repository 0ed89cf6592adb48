// SPDX-License-Identifier: Apache-2.0
#include "gateway/lead/relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "gateway/api/context.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

/// Says that a gateway passed the call on already: two that each take the other for the leader
/// must not play ball with it.
constexpr std::string_view kRelayed = "X-Tessera-Relayed";

/// Of one connection, or set anew by whoever sends.
constexpr std::array<std::string_view, 11> kOwnHeaders = {
    "connection", "keep-alive", "transfer-encoding", "content-length", "date",  "server",
    "host",       "te",         "trailer",           "upgrade",        "expect"};

bool IsOwnHeader(std::string_view name) {
  return std::ranges::any_of(kOwnHeaders, [&](std::string_view own) {
    return std::ranges::equal(name, own, [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
    });
  });
}

void SayNobodyLeads(const net::ResponseWriter& writer) {
  SendError(writer, {.status = 503, .text = "No gateway leads at present; try again in a second"});
}

/// The leader's answer, byte for byte.
class Answer final : public net::UpstreamListener {
 public:
  explicit Answer(net::ResponseWriter writer) : writer_(std::move(writer)) {}

  void OnHead(net::Response head) override {
    has_head_ = true;
    net::Headers headers;
    for (const auto& [name, value] : head.headers)
      if (!IsOwnHeader(name)) headers.Add(name, value);
    (void)writer_.StartStream(head.status, std::move(headers));
  }
  void OnBody(std::string_view bytes) override { (void)writer_.Write(bytes); }
  bool HasRoom() override { return writer_.unsent_bytes() < kUnsentBytesMax; }
  void OnEnd(const net::UpstreamEnd& end) override {
    // An answer that broke off is cut by not being finished.
    if (!has_head_) return SayNobodyLeads(writer_);
    if (end.status.ok()) (void)writer_.Finish();
  }

 private:
  const net::ResponseWriter writer_;
  bool has_head_ = false;
};

}  // namespace

Result<net::UpstreamAddress> ReadAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  std::string_view host = address.substr(0, std::min(colon, address.size()));
  const std::string_view digits =
      colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (host.empty() || error != std::errc() || end != digits.data() + digits.size() || port == 0)
    return Fail(InvalidArgument(
        fmt::format("{}: expected an address and a port, as 10.0.0.5:5000", address)));
  return net::UpstreamAddress{std::string(host), port};
}

Result<std::unique_ptr<Relay>> Relay::Make() {
  TESSERA_ASSIGN_OR_RETURN(auto client, net::UpstreamClient::Start({}));
  return std::unique_ptr<Relay>(new Relay(std::move(client)));
}

void Relay::SetLeader(std::optional<std::string> address) {
  std::optional<net::UpstreamAddress> leader;
  if (address.has_value())
    if (auto read = ReadAddress(*address); read.has_value()) leader = *std::move(read);
  const std::lock_guard lock(mutex_);
  leader_ = std::move(leader);
}

void Relay::Handle(const net::Request& request, const net::ResponseWriter& writer) const {
  std::optional<net::UpstreamAddress> leader;
  {
    const std::lock_guard lock(mutex_);
    leader = leader_;
  }
  const bool is_probe =
      request.path == "/healthz" || request.path == "/livez" || request.path == "/healthcheck";
  if (is_probe || (request.path == "/readyz" && leader.has_value())) {
    (void)writer.Send(net::Response::Json(200, "{\"status\":\"ok\"}"));
    return;
  }
  if (!leader.has_value() || request.headers.Has(kRelayed)) return SayNobodyLeads(writer);
  net::ClientRequest passed{.method = request.method, .target = request.target};
  for (const auto& [name, value] : request.headers)
    if (!IsOwnHeader(name)) passed.headers.Add(name, value);
  passed.headers.Set(kRelayed, "1");
  passed.body = request.body;
  const net::UpstreamCall call =
      client_->Send(*std::move(leader), std::move(passed), std::make_shared<Answer>(writer));
  writer.OnDisconnect([call] { call.Cancel(); });
}

}  // namespace tessera::gateway
