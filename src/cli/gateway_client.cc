// SPDX-License-Identifier: Apache-2.0
#include "cli/gateway_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/environment.h"
#include "cli/http_address.h"
#include "cli/validators.h"

#include "base/bytes.h"
#include "base/file.h"
#include "formats/printable.h"
#include "gateway/spec/read_spec.h"
#include "hub/curl_http.h"
#include "hub/nearest.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kDefaultUrl = "http://127.0.0.1:5000";
constexpr std::string_view kEndpoints = "/v1/llm/model-endpoints";
constexpr uint64_t kAnswerBytesMax = 256ull << 20;  // A page of 10,000 endpoints has 20 MB.
constexpr size_t kErrorBytesMax = 64 << 10;
constexpr size_t kErrorBytesShown = 500;
constexpr uint64_t kKeyFileBytesMax = 4 << 10;
// A gateway answers in milliseconds, but a call may be held until a worker is there.
constexpr std::chrono::seconds kConnectPatience{10};
constexpr std::chrono::seconds kSilencePatience{600};

Result<std::string> Address(const GatewayFlags& flags) {
  std::string_view source = "--gateway";
  std::string url = flags.url;
  if (const auto variable = Environment("TESSERA_GATEWAY"); url.empty() && variable.has_value()) {
    source = "TESSERA_GATEWAY";
    url = *variable;
  }
  if (url.empty()) url = kDefaultUrl;
  TESSERA_RETURN_IF_ERROR(CheckHttpAddress(source, url));
  if (url.find_first_of("?# ") != std::string::npos)
    return Fail(InvalidArgument(
        fmt::format("{}=\"{:.80}\": expected an address like {}", source, url, kDefaultUrl)));
  while (url.ends_with('/')) url.pop_back();
  return url;
}

Result<std::string> Key(const GatewayFlags& flags) {
  std::string key = Environment("TESSERA_API_KEY").value_or(std::string(kDefaultUser));
  std::string_view source = "TESSERA_API_KEY";
  if (!flags.key_file.empty()) {
    source = "--api-key-file";
    TESSERA_ASSIGN_OR_RETURN(key, ReadFile(flags.key_file, kKeyFileBytesMax));
    while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  }
  if (key.empty() || std::ranges::any_of(key, [](char c) { return c <= 0x20 || c >= 0x7f; }))
    return Fail(InvalidArgument(
        fmt::format("{}: expected one key, a line of characters without blanks", source)));
  return key;
}

/// {"loc": ["body", "min_workers"], "msg": ...} -> "min_workers: ...".
std::string FieldText(const json::Value& value) {
  const auto* entry = value.if_object();
  if (entry == nullptr) return json::Serialize(value);
  std::string place;
  if (const json::Value* loc = json::Find(*entry, "loc"); loc != nullptr && loc->is_array())
    for (const json::Value& part : loc->get_array()) {
      const std::string text =
          part.is_string() ? std::string(part.get_string()) : json::Serialize(part);
      if (text == "body" || text == "query") continue;
      place += (place.empty() ? "" : ".") + text;
    }
  const json::Value* msg = json::Find(*entry, "msg");
  const std::string text =
      msg != nullptr && msg->is_string() ? std::string(msg->get_string()) : json::Serialize(value);
  return place.empty() ? text : fmt::format("{}: {}", place, text);
}

Code CodeOf(int status) {
  switch (status) {
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kFailedPrecondition;
    case 429:
      return Code::kResourceExhausted;
    case 501:
      return Code::kUnimplemented;
    default:
      return status >= 500 ? Code::kUnavailable : Code::kInvalidArgument;
  }
}

}  // namespace

void AddGatewayFlags(CLI::App* verb, GatewayFlags* flags) {
  constexpr const char* kGroup = "Gateway";
  verb->add_option("--gateway", flags->url,
                   "Its address (else $TESSERA_GATEWAY, http://127.0.0.1:5000)")
      ->check(PlainText())
      ->group(kGroup);
  verb->add_option("--api-key-file", flags->key_file,
                   "File with the key, or the user name where there are no keys (else "
                   "$TESSERA_API_KEY, the name root)")
      ->check(PlainText())
      ->group(kGroup);
  verb->add_option("--tls-ca", flags->ca_file,
                   "PEM certificates to trust for https (default: the system's)")
      ->check(PlainText())
      ->group(kGroup);
}

std::string DetailText(std::string_view body) {
  const auto parsed = json::Parse(body, {}, "answer");
  const auto* object = parsed.has_value() ? parsed->if_object() : nullptr;
  const json::Value* detail = object == nullptr ? nullptr : json::Find(*object, "detail");
  if (detail == nullptr) return formats::Printable(body, kErrorBytesShown);
  if (detail->is_string()) return std::string(detail->get_string());
  if (!detail->is_array()) return json::Serialize(*detail);
  std::string text;
  for (const json::Value& entry : detail->get_array())
    text += (text.empty() ? "" : "; ") + FieldText(entry);
  return text;
}

std::string UnknownEndpointText(std::string_view name, std::vector<std::string> names) {
  constexpr size_t kNearest = 3, kShown = 5;
  const std::string begin = fmt::format("there is no endpoint \"{}\"", name);
  if (names.empty()) return begin + ": there are none that you may use";
  std::vector<std::string> near, rest = names;
  while (near.size() < kNearest) {
    const auto found = hub::NearestName(name, rest);
    if (!found.has_value()) break;
    near.push_back(*found);
    std::erase(rest, *found);
  }
  if (!near.empty())
    return fmt::format("{}; did you mean \"{}\"?", begin, fmt::join(near, "\", \""));
  std::ranges::sort(names);
  const size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return fmt::format("{}; there are {}{}", begin, fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

GatewayClient::GatewayClient(std::unique_ptr<hub::Http> http, std::string url, std::string key)
    : http_(std::move(http)), url_(std::move(url)), key_(std::move(key)) {}

Result<GatewayClient> GatewayClient::Open(const GatewayFlags& flags) {
  TESSERA_ASSIGN_OR_RETURN(std::string url, Address(flags));
  TESSERA_ASSIGN_OR_RETURN(std::string key, Key(flags));
  hub::Settings settings;
  settings.ca_file = flags.ca_file;
  settings.connect_timeout = kConnectPatience;
  settings.stall_timeout = kSilencePatience;
  TESSERA_ASSIGN_OR_RETURN(auto http, hub::NewCurlHttp(settings));
  return GatewayClient(std::move(http), std::move(url), std::move(key));
}

Result<hub::HttpHead> GatewayClient::Send(std::string_view method, const std::string& target,
                                          const json::Object* body, const hub::HttpSink& sink) {
  hub::HttpRequest request;
  request.method = method;
  request.url = url_ + target;
  request.bearer = key_;
  request.is_direct = IsLoopbackAddress(url_);
  request.error_bytes_max = kErrorBytesMax;
  if (body != nullptr) request.json_body = json::Serialize(*body);
  bool has_answered = false;
  const hub::HttpSink marking{[&](const hub::HttpHead&) -> Status {
                                has_answered = true;
                                return {};
                              },
                              sink.on_body};
  auto head = http_->OneHop(request, marking);
  if (!head.has_value() && head.error().code() == Code::kFailedPrecondition)
    return Fail(
        FailedPrecondition(fmt::format("{}; or --tls-ca FILE names them", head.error().message())));
  if (head.has_value() || head.error().code() != Code::kUnavailable) return head;
  if (has_answered)
    return Fail(
        Unavailable(fmt::format("the answer of {} broke off ({})", url_, head.error().message())));
  return Fail(Unavailable(
      fmt::format("no gateway answers at {} ({}): start one with `tessera gateway`, or name its "
                  "address with --gateway URL or TESSERA_GATEWAY",
                  url_, head.error().message())));
}

Status GatewayClient::Refusal(const hub::HttpHead& head) const {
  if (head.status / 100 == 3)
    return InvalidArgument(fmt::format(
        "{} answers with a redirect{}: name that address", url_,
        head.Find("location") != nullptr ? " to " + formats::Printable(*head.Find("location"), 200)
                                         : ""));
  const std::string text = DetailText(head.error_text);
  if (head.status == 401)
    return Status(Code::kUnauthenticated,
                  fmt::format("{} does not know the caller ({}): give a key with --api-key-file "
                              "FILE or TESSERA_API_KEY",
                              url_, text));
  return Status(CodeOf(head.status),
                text.empty() ? fmt::format("{} answers {}", url_, head.status) : text);
}

Result<json::Object> GatewayClient::Call(std::string_view method, const std::string& target,
                                         const json::Object* body) {
  std::string text;
  const hub::HttpSink sink{
      {}, [&](ByteSpan bytes) -> Status {
        if (bytes.size() > kAnswerBytesMax - text.size())
          return ResourceExhausted(fmt::format("{} answers with more than the limit of {} bytes",
                                               url_, kAnswerBytesMax));
        text += AsText(bytes);
        return {};
      }};
  TESSERA_ASSIGN_OR_RETURN(const hub::HttpHead head, Send(method, target, body, sink));
  if (!head.ok()) return Fail(Refusal(head));
  auto answer = json::Parse(text, {.max_bytes = kAnswerBytesMax}, url_);
  if (!answer.has_value() || !answer->is_object())
    return Fail(DataLoss(fmt::format("{}{} does not answer as a gateway: is it one?", url_,
                                     target.substr(0, target.find('?')))));
  return std::move(answer->get_object());
}

Result<json::Object> GatewayClient::CallEndpoint(std::string_view method, std::string_view name,
                                                 std::string_view rest, const json::Object* body) {
  if (!gateway::IsEndpointName(name)) return Fail(UnknownEndpoint(name));
  auto answer = Call(method, fmt::format("{}/{}{}", kEndpoints, name, rest), body);
  if (!answer.has_value() && answer.error().code() == Code::kNotFound)
    return Fail(UnknownEndpoint(name));
  return answer;
}

Status GatewayClient::UnknownEndpoint(std::string_view name) {
  TESSERA_ASSIGN_OR_RETURN(const json::Object list, Call("GET", std::string(kEndpoints)));
  std::vector<std::string> names;
  if (const json::Value* all = json::Find(list, "model_endpoints");
      all != nullptr && all->is_array())
    for (const json::Value& one : all->get_array()) {
      if (!one.is_object()) continue;
      auto found = json::GetString(one.get_object(), "name", "");
      if (found.has_value() && !found->empty()) names.push_back(*std::move(found));
    }
  // It is there, but its owner is somebody else.
  if (std::ranges::find(names, name) != names.end())
    return NotFound(fmt::format(
        "endpoint \"{}\" is somebody else's: its owner alone may change it or look into it (the "
        "key, or user name, is that of --api-key-file or TESSERA_API_KEY)",
        name));
  return NotFound(UnknownEndpointText(name, std::move(names)));
}

Status GatewayClient::Stream(const std::string& target, const json::Object& body,
                             const std::function<Status(std::string_view)>& on_body) {
  const hub::HttpSink sink{{}, [&](ByteSpan bytes) { return on_body(AsText(bytes)); }};
  TESSERA_ASSIGN_OR_RETURN(const hub::HttpHead head, Send("POST", target, &body, sink));
  return head.ok() ? Status() : Refusal(head);
}

}  // namespace tessera::cli
