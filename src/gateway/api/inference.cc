// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/inference.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/utf8.h"
#include "gateway/api/caller.h"
#include "gateway/api/completion_v1.h"
#include "gateway/api/endpoint_json.h"
#include "gateway/forward/forward.h"
#include "gateway/limits.h"
#include "gateway/spec/brief.h"
#include "net/sse.h"

namespace tessera::gateway {
namespace {

/// What a worker said of one connection, not of the answer.
constexpr std::array<std::string_view, 7> kHopHeaders = {
    "connection", "keep-alive", "transfer-encoding", "content-length",
    "date",       "server",     "www-authenticate"};

bool IsHopHeader(std::string_view name) {
  for (const std::string_view hop : kHopHeaders)
    if (std::ranges::equal(name, hop,
                           [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; }))
      return true;
  return false;
}

/// Without a worker's answer: what the caller is told.
ApiError ErrorOf(const Status& status, std::string_view request_id) {
  switch (status.code()) {
    case Code::kDeadlineExceeded:
      return {.status = 504, .text = status.message()};
    case Code::kResourceExhausted:
      return {.status = 429, .text = status.message()};
    case Code::kNotFound:
      return {.status = 404, .text = "The specified endpoint could not be found."};
    case Code::kUnavailable:
      return {.status = 503,
              .text = fmt::format("No worker could answer request_id {}: {}", request_id,
                                  status.message())};
    default:
      return {.status = 500,
              .text = fmt::format("Upstream service error for request_id {}", request_id)};
  }
}

/// A worker's refusal, in OpenAI's form -> ours.
ApiError ErrorOfWorker(int status, const std::string& body, std::string_view request_id) {
  if (status >= 500)
    return {.status = 500,
            .text = fmt::format("Upstream service error for request_id {}", request_id)};
  ApiError error{.status = status == 429 ? 429 : 400,
                 .text = std::string(Brief(body, kTextBytesMax))};
  const auto parsed = json::Parse(body, {}, "answer");
  if (!parsed.has_value() || !parsed->is_object()) return error;
  const json::Value* inner = json::Find(parsed->get_object(), "error");
  if (inner == nullptr || !inner->is_object()) return error;
  if (const auto text = json::GetString(inner->get_object(), "message", ""); text.has_value())
    error.text = *text;
  return error;
}

/// Both {"detail"} for clients of llm-engine and {"error"} for those of OpenAI.
void SendOpenAiError(const net::ResponseWriter& writer, const ApiError& error) {
  const bool is_ours = error.status >= 500;
  const std::string text = EscapeNonUtf8(error.text);
  json::Object body{
      {"detail", text},
      {"error", json::Object{{"message", text},
                             {"type", is_ours ? "server_error" : "invalid_request_error"},
                             {"param", nullptr},
                             {"code", error.status == 404 ? json::Value("model_not_found")
                                                          : json::Value()}}}};
  net::Response response = net::Response::Json(error.status, json::Serialize(body));
  if (error.status == 401) response.headers.Set("WWW-Authenticate", "Bearer");
  if (error.status == 429 || error.status == 503) response.headers.Set("Retry-After", "1");
  (void)writer.Send(std::move(response));
}

/// Sinks share: who is answered, and a slow client slows its worker down.
class AnsweringSink : public ForwardSink {
 public:
  AnsweringSink(net::ResponseWriter writer, std::string request_id)
      : writer_(std::move(writer)), request_id_(std::move(request_id)) {}
  bool HasRoom() override { return writer_.unsent_bytes() < kUnsentBytesMax; }

 protected:
  /// False when a worker's answer grows beyond all bounds.
  bool Collect(std::string_view bytes) {
    if (body_.size() + bytes.size() > kAnswerBytesMax) return false;
    body_ += bytes;
    return true;
  }

  const net::ResponseWriter writer_;
  const std::string request_id_;
  net::Response head_;
  std::string body_;
  bool has_head_ = false;
};

/// OpenAI's routes: the worker's bytes as they are.
class PassThrough final : public AnsweringSink {
 public:
  using AnsweringSink::AnsweringSink;

  void OnHead(net::Response head) override {
    has_head_ = true;
    is_stream_ = !head.headers.Has("Content-Length");
    is_events_ = head.headers.Find("Content-Type").value_or("").starts_with("text/event-stream");
    head_.status = head.status;
    for (const auto& [name, value] : head.headers)
      if (!IsHopHeader(name)) head_.headers.Add(name, value);
    if (is_stream_) (void)writer_.StartStream(head_.status, head_.headers);
  }
  void OnBody(std::string_view bytes) override {
    if (is_stream_)
      (void)writer_.Write(bytes);
    else if (!Collect(bytes))
      is_too_large_ = true;
  }
  void OnEnd(const Status& status) override {
    if (!has_head_) return SendOpenAiError(writer_, ErrorOf(status, request_id_));
    if (is_stream_) {
      if (!status.ok() && is_events_)
        (void)writer_.Write(net::EncodeSseData(json::Serialize(json::Object{
            {"error",
             StreamError(500, fmt::format("The worker broke off; request_id {}", request_id_))}})));
      // What is no stream of events cannot say so: it is cut by not being finished.
      if (status.ok() || is_events_) (void)writer_.Finish();
      return;
    }
    if (!status.ok() || is_too_large_)
      return SendOpenAiError(writer_, ErrorOf(Internal("broken off"), request_id_));
    head_.body = std::move(body_);
    (void)writer_.Send(std::move(head_));
  }

 private:
  bool is_stream_ = false, is_events_ = false, is_too_large_ = false;
};

/// completions-sync.
class WholeCompletion final : public AnsweringSink {
 public:
  WholeCompletion(net::ResponseWriter writer, std::string request_id, AskedCompletion asked)
      : AnsweringSink(std::move(writer), std::move(request_id)), asked_(std::move(asked)) {}

  void OnHead(net::Response head) override {
    has_head_ = true;
    head_ = std::move(head);
  }
  void OnBody(std::string_view bytes) override {
    if (!Collect(bytes)) is_too_large_ = true;
  }
  void OnEnd(const Status& status) override {
    if (!has_head_) return Refuse(ErrorOf(status, request_id_));
    if (!status.ok() || is_too_large_) return Refuse(ErrorOf(Internal("broken off"), request_id_));
    if (head_.status != 200) return Refuse(ErrorOfWorker(head_.status, body_, request_id_));
    const auto answer = CompletionAnswer(asked_, body_, request_id_);
    if (!answer.has_value()) return Refuse(ErrorOf(answer.error(), request_id_));
    SendJson(writer_, 200, *answer);
  }

 private:
  /// The first version reported failures of workers with 200.
  void Refuse(const ApiError& error) {
    if (!asked_.is_early || error.status < 500) return SendError(writer_, error);
    SendJson(writer_, 200,
             {{"status", "FAILURE"}, {"outputs", json::Array()}, {"traceback", error.text}});
  }

  const AskedCompletion asked_;
  bool is_too_large_ = false;
};

/// completions-stream.
class StreamedCompletion final : public AnsweringSink {
 public:
  StreamedCompletion(net::ResponseWriter writer, std::string request_id, AskedCompletion asked)
      : AnsweringSink(std::move(writer), request_id),
        chunks_(std::move(asked), std::move(request_id)),
        events_([this](const net::SseEvent& event) { OnEvent(event.data); }) {}

  void OnHead(net::Response head) override {
    has_head_ = true;
    head_ = std::move(head);
    if (head_.status == 200)
      (void)writer_.StartStream(200, {{"Content-Type", "text/event-stream"},
                                      {"Cache-Control", "no-cache"},
                                      {"X-Request-Id", request_id_}});
  }
  void OnBody(std::string_view bytes) override {
    if (head_.status != 200)
      (void)Collect(bytes);
    else if (!events_.Feed(bytes).ok())
      Break();
  }
  void OnEnd(const Status& status) override {
    if (!has_head_) return SendError(writer_, ErrorOf(status, request_id_));
    if (head_.status != 200)
      return SendError(writer_, ErrorOfWorker(head_.status, body_, request_id_));
    if (!chunks_.is_finished()) Break();
    (void)writer_.Finish();
  }

 private:
  void OnEvent(std::string_view data) {
    const auto chunks = chunks_.Feed(data);
    if (!chunks.has_value()) return Break();
    for (const std::string& chunk : *chunks) WriteChunk(chunk);
  }
  void Break() {
    if (chunks_.is_finished()) return;
    WriteChunk(chunks_.ErrorChunk(
        500, fmt::format("Upstream service error for request_id {}", request_id_)));
  }
  /// Events of this API end with CRLF, and no [DONE] comes after them: its client dies of one.
  void WriteChunk(const std::string& json) { (void)writer_.Write("data: " + json + "\r\n\r\n"); }

  CompletionChunks chunks_;
  net::SseParser events_;
};

net::ClientRequest ToWorker(const net::Request& from, std::string_view target,
                            const std::string& request_id, std::string body) {
  net::ClientRequest request{.method = "POST", .target = std::string(target)};
  request.headers = {{"Content-Type", "application/json"}, {"X-Request-Id", request_id}};
  for (const std::string_view name : {"traceparent", "tracestate"})
    if (const auto value = from.headers.Find(name)) request.headers.Add(name, *value);
  request.body = std::move(body);
  return request;
}

/// The caller's own id, if it is one, so that one name goes through all logs.
std::string RequestIdOf(const net::Request& request) {
  const auto given = request.headers.Find("X-Request-Id");
  const bool is_usable = given.has_value() && !given->empty() && given->size() <= 128;
  return is_usable ? std::string(*given) : NewRequestId();
}

void Forward(const Context& context, const WayTo& way, net::ClientRequest request,
             std::string_view prompt, const net::ResponseWriter& writer,
             std::shared_ptr<ForwardSink> sink) {
  writer.OnDisconnect(StartForward(context.upstream, way.route,
                                   {.request = std::move(request),
                                    .prefix = PrefixHashes(prompt),
                                    .deadline = context.clock->Now() + context.hold},
                                   std::move(sink)));
}

/// What prompts that begin alike share.
std::string PromptOf(const json::Object& body) {
  for (const std::string_view key : {"messages", "prompt", "input"})
    if (const json::Value* value = json::Find(body, key)) {
      const auto* text = value->if_string();
      return text != nullptr ? std::string(*text) : json::Serialize(*value);
    }
  return {};
}

}  // namespace

void HandleCompletionV1(const Context& context, const net::Request& request,
                        const net::ResponseWriter& writer, bool is_stream) {
  const auto user = UserOf(request);
  if (!user.has_value()) return SendError(writer, user.error());
  const auto name = request.Query("model_endpoint_name");
  if (!name.has_value())
    return SendError(
        writer,
        {.status = 422,
         .fields = {
             {"missing", {"query", "model_endpoint_name"}, "Field required", json::Value()}}});
  const WayTo way = context.controller->FindRoute(*name, *user);
  if (way.route == nullptr)
    return SendError(writer, {.status = 404, .text = "The specified endpoint could not be found."});
  const auto body = BodyObject(request, kRequestBytesMax);
  if (!body.has_value()) return SendError(writer, body.error());
  auto asked = ReadCompletion(*body, *name, is_stream);
  if (!asked.has_value()) return SendError(writer, asked.error());
  if (way.is_off)
    return SendError(writer,
                     {.status = 410, .text = "The endpoint is switched off: max_workers is 0"});
  const std::string id = RequestIdOf(request);
  net::ClientRequest forwarded =
      ToWorker(request, "/v1/completions", id, json::Serialize(asked->body));
  const std::string prefix = asked->prefix;
  std::shared_ptr<ForwardSink> sink;
  if (is_stream)
    sink = std::make_shared<StreamedCompletion>(writer, id, *std::move(asked));
  else
    sink = std::make_shared<WholeCompletion>(writer, id, *std::move(asked));
  Forward(context, way, std::move(forwarded), prefix, writer, std::move(sink));
}

void HandleOpenAi(const Context& context, const net::Request& request,
                  const net::ResponseWriter& writer, std::string_view target) {
  const auto user = UserOf(request);
  if (!user.has_value()) return SendOpenAiError(writer, user.error());
  const auto body = BodyObject(request, kRequestBytesMax);
  if (!body.has_value()) {
    ApiError error = body.error();
    if (error.text.empty()) error = {.status = 400, .text = "body: expected a JSON object"};
    return SendOpenAiError(writer, error);
  }
  const auto name = json::GetString(*body, "model", "");
  if (!name.has_value() || name->empty())
    return SendOpenAiError(writer,
                           {.status = 400, .text = "model: expected the name of an endpoint"});
  const WayTo way = context.controller->FindRoute(*name, *user);
  if (way.route == nullptr)
    return SendOpenAiError(writer,
                           {.status = 404, .text = "The specified endpoint could not be found."});
  if (way.is_off)
    return SendOpenAiError(
        writer, {.status = 410, .text = "The endpoint is switched off: max_workers is 0"});
  const std::string id = RequestIdOf(request);
  Forward(context, way, ToWorker(request, target, id, request.body), PromptOf(*body), writer,
          std::make_shared<PassThrough>(writer, id));
}

void HandleModels(const Context& context, const net::Request& request,
                  const net::ResponseWriter& writer) {
  const auto user = UserOf(request);
  if (!user.has_value()) return SendOpenAiError(writer, user.error());
  json::Array models;
  for (const EndpointView& view : context.controller->List(*user)) {
    if (view.record.is_deleting) continue;
    models.push_back(json::Object{{"id", view.record.spec.name},
                                  {"object", "model"},
                                  {"created", view.record.created_at},
                                  {"owned_by", view.record.owner},
                                  {"root", view.record.spec.model_name},
                                  {"ready", view.is_ready}});
  }
  SendJson(writer, 200, {{"object", "list"}, {"data", std::move(models)}});
}

}  // namespace tessera::gateway
