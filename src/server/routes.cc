// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "base/random.h"
#include "server/access/access_control.h"
#include "server/admin.h"
#include "server/anthropic/endpoints.h"
#include "server/anthropic/error.h"
#include "server/cors.h"
#include "server/metrics.h"
#include "server/openai/embeddings.h"
#include "server/openai/endpoints.h"
#include "server/openai/error.h"
#include "server/openapi/document.h"
#include "server/operate/endpoints.h"
#include "server/readiness.h"
#include "server/request_observer.h"
#include "server/responses/endpoint.h"
#include "server/resume.h"
#include "server/service.h"
#include "server/shortfin/error.h"
#include "server/shortfin/generate_endpoint.h"

namespace tessera::server {
namespace {

using Call = std::function<void(const Context&, const net::Request&, const Reply&)>;

/// What a key needs for a route. Open routes answer anyone: probes have no key.
enum class Access : uint8_t { kOpen, kInference, kMetrics, kAdmin };
enum class Input : uint8_t { kNone, kJson };

std::string RequestIdOf(const net::Request& request) {
  const auto given = request.headers.Find("x-request-id");
  return given.has_value() && given->size() <= 128 ? std::string(*given)
                                                   : fmt::format("req-{:016x}", SystemRandom64());
}

/// `route`: the pattern that takes the request; empty where none does.
Reply MakeReply(const ApiOptions& options, const RequestObserver& observer,
                const net::Request& request, std::string_view route, net::ResponseWriter writer,
                Caller caller = {}) {
  auto scope = observer.Open(request, route, RequestIdOf(request));
  if (caller.key != nullptr) scope->record().key_name = caller.key->name;
  net::Headers headers{{"X-Request-Id", scope->record().request_id},
                       {"traceresponse", Traceresponse(scope->record().trace)}};
  AddCorsHeaders(options, &headers);
  return Reply(std::move(writer), std::move(headers), std::move(caller), std::move(scope));
}

/// In the shape that clients of this path know.
net::Response ErrorResponse(const net::Request& request, const openai::ApiError& error,
                            const Reply& reply) {
  if (request.path == "/v1/messages" || request.path.starts_with("/v1/messages/"))
    return anthropic::ErrorResponse(error, reply.request_id());
  if (request.path == "/generate") return shortfin::ErrorResponse(error);
  return openai::ErrorResponse(error);
}

void Refuse(const net::Request& request, const openai::ApiError& error, const Reply& reply,
            std::string_view allow = {}) {
  net::Response response = ErrorResponse(request, error, reply);
  if (!allow.empty()) response.headers.Set("Allow", allow);
  (void)reply.Send(std::move(response));
}

Scope ScopeOf(Access access) {
  switch (access) {
    case Access::kMetrics:
      return Scope::kMetrics;
    case Access::kAdmin:
      return Scope::kAdmin;
    default:
      return Scope::kInference;
  }
}

/// Calls that make work count as requests of their key; looking things up and cancelling do not.
bool IsCounted(const net::Request& request, Access access) {
  return access == Access::kInference && (request.method == "POST" || request.method == "PUT");
}

struct RouteKind {
  std::string_view pattern;
  Access access;
  Input input;
};

void Dispatch(const Context& context, const RouteKind& route, const Call& call,
              const net::Request& request, net::ResponseWriter writer) {
  const auto [pattern, access, input] = route;
  openai::ApiResult<Caller> caller;
  if (access != Access::kOpen) caller = context.access->Admit(request, ScopeOf(access));
  const Reply reply = MakeReply(context.options, *context.observer, request, pattern,
                                std::move(writer), caller.value_or(Caller{}));
  if (!caller.has_value()) return Refuse(request, caller.error(), reply);
  if (IsCounted(request, access) && caller->usage != nullptr) {
    if (const auto refusal = caller->usage->CountRequest()) {
      reply.SetRetryAfter(refusal->retry_after);
      return Refuse(request, ToApiError(*refusal), reply);
    }
  }
  if (input == Input::kJson)
    if (const auto error = openai::CheckContentType(request)) return Refuse(request, *error, reply);
  call(context, request, reply);
}

class Routes {
 public:
  explicit Routes(const Context* context) : context_(context) {}

  void Add(std::string_view method, std::string_view pattern, Access access, Input input,
           Call call) {
    router_.Add(
        method, pattern,
        [context = context_, access, input, call = std::move(call), route = std::string(pattern)](
            const net::Request& request, net::ResponseWriter writer) {
          Dispatch(*context, {route, access, input}, call, request, std::move(writer));
        });
  }

  /// For calls that answer at once.
  template <class F>
  void AddNow(std::string_view method, std::string_view pattern, Access access, Input input,
              F call) {
    Add(method, pattern, access, input,
        [call](const Context& context, const net::Request& request, const Reply& reply) {
          (void)reply.Send(call(context, request));
        });
  }

  net::Router Finish() {
    AddHooks();
    return std::move(router_);
  }

 private:
  void AddHooks() {
    router_.OnNotFound([context = context_](net::Request request, net::ResponseWriter writer) {
      Refuse(request,
             {.http_status = 404,
              .message = fmt::format("there is no {:.200} here", request.path),
              .type = "invalid_request_error",
              .param = {},
              .code = "unknown_path"},
             MakeReply(context->options, *context->observer, request, {}, std::move(writer)));
    });
    router_.OnMethodNotAllowed([context = context_](net::Request request,
                                                    net::ResponseWriter writer,
                                                    std::string_view allow) {
      Refuse(request,
             {.http_status = 405,
              .message =
                  fmt::format("{:.200} takes {}, not {:.20}", request.path, allow, request.method),
              .type = "invalid_request_error",
              .param = {},
              .code = "method_not_allowed"},
             MakeReply(context->options, *context->observer, request, {}, std::move(writer)),
             allow);
    });
    router_.OnOptions([context = context_](net::Request request, net::ResponseWriter writer,
                                           std::string_view allow) {
      const Reply reply =
          MakeReply(context->options, *context->observer, request, {}, std::move(writer));
      (void)reply.Send(AnswerOptions(context->options, request, allow));
    });
  }

  const Context* context_;
  net::Router router_;
};

}  // namespace

net::Handler MakeLoadingHandler(const ApiOptions* options, const RequestObserver* observer,
                                const AccessControl* access) {
  return [=](const net::Request& request, net::ResponseWriter writer) {
    const Reply reply = MakeReply(*options, *observer, request, {}, std::move(writer));
    const bool is_read = request.method == "GET" || request.method == "HEAD";
    if (request.path == "/livez" && is_read) {
      (void)reply.Send(Live());
      return;
    }
    if (request.path == "/metrics" && is_read && options->downloads != nullptr) {
      const auto download = options->downloads->Read();
      if (const auto caller = access->Admit(request, Scope::kMetrics); !caller.has_value())
        return Refuse(request, caller.error(), reply);
      if (download.has_value()) {
        net::Response response;
        response.headers.Set("Content-Type", kMetricsContentType);
        response.body = DownloadPage(*download);
        (void)reply.Send(std::move(response));
        return;
      }
    }
    Refuse(request,
           {.http_status = 503,
            .message = "loading: the model is not ready yet, try again soon",
            .type = "server_error",
            .param = {},
            .code = "loading"},
           reply);
  };
}

net::Router MakeRouter(const Context* context) {
  using enum Access;
  using enum Input;
  Routes routes(context);
  const auto health = [](const Context& c, const net::Request&) { return Health(c); };
  routes.AddNow("GET", "/health", kOpen, kNone, health);
  routes.Add("GET", "/readyz", kOpen, kNone, HandleReady);
  routes.AddNow("GET", "/livez", kOpen, kNone,
                [](const Context&, const net::Request&) { return Live(); });
  routes.AddNow("GET", "/version", kOpen, kNone,
                [](const Context& c, const net::Request&) { return Version(c); });
  routes.AddNow("GET", "/metrics", kMetrics, kNone,
                [](const Context& c, const net::Request&) { return Metrics(c); });
  routes.AddNow("GET", "/v1/models", kInference, kNone,
                [](const Context& c, const net::Request&) { return ListModels(c); });
  // Ids have slashes: org/name.
  routes.AddNow("GET", "/v1/models/{id...}", kInference, kNone,
                [](const Context& c, const net::Request& r) { return GetModel(c, r.Param("id")); });
  routes.Add("POST", "/v1/completions", kInference, kJson, openai::HandleCompletions);
  routes.Add("POST", "/v1/chat/completions", kInference, kJson, openai::HandleChat);
  routes.AddNow(
      "GET", "/tokenizer_info", kInference, kNone,
      [](const Context& c, const net::Request&) { return openai::HandleTokenizerInfo(c); });
  routes.Add("POST", "/v1/embeddings", kInference, kJson, openai::HandleEmbeddings);
  routes.Add("POST", "/v1/messages", kInference, kJson, anthropic::HandleMessages);
  routes.Add("POST", "/v1/messages/count_tokens", kInference, kJson, anthropic::HandleCountTokens);
  routes.Add("POST", "/v1/responses", kInference, kJson, responses::HandleResponses);
  routes.AddNow("POST", "/tokenize", kInference, kJson, openai::HandleTokenize);
  routes.AddNow("POST", "/detokenize", kInference, kJson, openai::HandleDetokenize);
  routes.AddNow("POST", "/apply-template", kInference, kJson, openai::HandleApplyTemplate);
  routes.Add("GET", "/v1/requests/{id}/events", kInference, kNone, HandleResume);
  routes.AddNow("GET", "/openapi.json", kOpen, kNone,
                [](const Context&, const net::Request&) { return openapi::HandleOpenApi(); });
  // Names that clients choose may have slashes.
  routes.Add("DELETE", "/v1/requests/{id...}", kInference, kNone,
             [](const Context& c, const net::Request& r, const Reply& reply) {
               (void)reply.Send(CancelRequest(c, r.Param("id"), reply.caller()));
             });
  routes.AddNow("GET", "/admin/stats", kAdmin, kNone,
                [](const Context& c, const net::Request&) { return operate::HandleStats(c); });
  routes.Add("POST", "/admin/drain", kAdmin, kJson, operate::HandleDrain);
  routes.AddNow("POST", "/admin/reload", kAdmin, kNone,
                [](const Context& c, const net::Request&) { return operate::HandleReload(c); });
  // Both methods, and no content type asked for, as the original server.
  routes.Add("POST", "/generate", kInference, kNone, shortfin::HandleGenerate);
  routes.Add("PUT", "/generate", kInference, kNone, shortfin::HandleGenerate);
  return routes.Finish();
}

}  // namespace tessera::server
