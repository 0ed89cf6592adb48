// SPDX-License-Identifier: Apache-2.0
#include "server/resume.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/openai/error.h"

namespace tessera::server {
namespace {

void Refuse(const Reply& reply, int status, std::string message, std::string_view code) {
  (void)reply.Send(openai::ErrorResponse({.http_status = status,
                                          .message = std::move(message),
                                          .type = "invalid_request_error",
                                          .param = "Last-Event-ID",
                                          .code = std::string(code)}));
}

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void Resume(const Context& context, std::string_view id, uint64_t after, const Reply& reply) {
  auto stream = context.streams->Find(id);
  // Somebody else's looks like none.
  if (stream == nullptr || !reply.caller().MayTouch(stream->owner()))
    return Refuse(reply, 404,
                  fmt::format("no stream '{:.200}' can be gone on with: it was not asked for with "
                              "stream_options.resumable, or it is over for too long",
                              id),
                  "stream_not_found");
  context.tasks->Post([stream = std::move(stream), reply, after] {
    const Status attached = stream->Attach(reply, after);
    if (attached.code() == Code::kOutOfRange)
      return Refuse(reply, 410, attached.message(), "events_gone");
    if (!attached.ok()) Refuse(reply, 400, attached.message(), "invalid_value");
  });
}

}  // namespace

void HandleResume(const Context& context, const net::Request& request, const Reply& reply) {
  // HEAD comes with GET; it must not take the stream from its reader.
  if (request.method != "GET") {
    net::Response response = openai::ErrorResponse({.http_status = 405,
                                                    .message = "events can be had with GET only",
                                                    .type = "invalid_request_error",
                                                    .param = {},
                                                    .code = "method_not_allowed"});
    response.headers.Set("allow", "GET");
    return (void)reply.Send(std::move(response));
  }
  const std::string_view id = request.Param("id");
  std::string_view last = request.headers.Find("last-event-id").value_or("0");
  if (last.starts_with(id) && last.size() > id.size() && last[id.size()] == ':')
    last.remove_prefix(id.size() + 1);
  const auto after = Number(last);
  if (!after.has_value())
    return Refuse(
        reply, 400,
        fmt::format("Last-Event-ID is '{:.200}', expected an event id of this stream", last),
        "invalid_value");
  Resume(context, id, *after, reply);
}

bool ResumeIfAsked(const Context& context, const net::Request& request, const Reply& reply) {
  const auto last = request.headers.Find("last-event-id");
  if (!last.has_value() || last->empty()) return false;
  const size_t colon = last->rfind(':');
  const auto after =
      colon == last->npos ? std::nullopt : Number(std::string_view(*last).substr(colon + 1));
  if (after.has_value()) {
    Resume(context, std::string_view(*last).substr(0, colon), *after, reply);
  } else {
    Refuse(reply, 400, fmt::format("Last-Event-ID is '{:.200}', expected an event id", *last),
           "invalid_value");
  }
  return true;
}

}  // namespace tessera::server
