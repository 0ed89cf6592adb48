// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/endpoints_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gateway/api/caller.h"
#include "gateway/api/endpoint_json.h"
#include "gateway/api/query.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

constexpr int64_t kEventsPageDefault = 100;
constexpr uint64_t kLogBytesShown = 256u << 10;

ApiError NotFoundError(std::string_view name) {
  return {.status = 404,
          .text = fmt::format("Model Endpoint {}  was not found.", name.substr(0, 200))};
}

using Result = ApiResult<json::Object>;
/// What a route does for a known user; the answer is its object with 200.
using Action = Result (*)(const Context&, const net::Request&, const std::string& user);

Result Create(const Context& context, const net::Request& request, const std::string& user) {
  const auto body = BodyObject(request, kSpecBytesMax);
  if (!body.has_value()) return std::unexpected(body.error());
  const auto asked = ReadCreate(*body);
  if (!asked.has_value()) return std::unexpected(asked.error());
  const auto id = context.controller->Create(*asked, user);
  if (!id.has_value()) return std::unexpected(id.error());
  json::Object answer{{"endpoint_creation_task_id", *id}};
  return answer;
}

Result Update(const Context& context, const net::Request& request, const std::string& user) {
  const auto body = BodyObject(request, kSpecBytesMax);
  if (!body.has_value()) return std::unexpected(body.error());
  const auto id = context.controller->Update(request.Param("name"), *body, user);
  if (!id.has_value()) return std::unexpected(id.error());
  return json::Object{{"endpoint_creation_task_id", *id}};
}

Result Delete(const Context& context, const net::Request& request, const std::string& user) {
  const auto done = context.controller->Delete(request.Param("name"), user);
  if (!done.has_value()) return std::unexpected(done.error());
  return json::Object{{"deleted", true}};
}

Result Restart(const Context& context, const net::Request& request, const std::string& user) {
  const auto done = context.controller->Restart(request.Param("name"), user);
  if (!done.has_value()) return std::unexpected(done.error());
  return json::Object{{"restarted", true}};
}

Result Get(const Context& context, const net::Request& request, const std::string& user) {
  const auto view = context.controller->Find(request.Param("name"), user);
  if (!view.has_value()) return std::unexpected(NotFoundError(request.Param("name")));
  return EndpointJson(*view, user);
}

ApiResult<void> Order(std::vector<EndpointView>* views, std::string_view order) {
  if (order == "oldest") return {};
  if (order == "newest") {
    std::ranges::reverse(*views);
  } else if (order == "alphabetical") {
    std::ranges::sort(*views, {}, [](const EndpointView& view) { return view.record.spec.name; });
  } else {
    return std::unexpected(
        QueryError("order_by", "Input should be 'newest', 'oldest' or 'alphabetical'"));
  }
  return {};
}

Result List(const Context& context, const net::Request& request, const std::string& user) {
  const auto limit = QueryNumber(request, "limit", 1, kPageMax, kPageMax);
  if (!limit.has_value()) return std::unexpected(limit.error());
  std::vector<EndpointView> views = context.controller->List(user);
  if (const auto ordered = Order(&views, request.Query("order_by").value_or("oldest"));
      !ordered.has_value())
    return std::unexpected(ordered.error());
  if (const auto name = request.Query("name"))
    std::erase_if(views, [&](const EndpointView& view) { return view.record.spec.name != *name; });
  auto begin = views.begin();
  if (const auto after = request.Query("after")) {
    begin = std::ranges::find(views, *after,
                              [](const EndpointView& view) { return view.record.spec.name; });
    if (begin == views.end())
      return std::unexpected(QueryError("after", "Input should be the name of an endpoint"));
    ++begin;
  }
  json::Array endpoints;
  for (; begin != views.end() && static_cast<int64_t>(endpoints.size()) < *limit; ++begin)
    endpoints.push_back(EndpointJson(*begin, user));
  // Absent limit means all, as clients of llm-engine expect.
  json::Object answer{{"model_endpoints", std::move(endpoints)}};
  answer["has_more"] = begin != views.end();
  return answer;
}

/// For what only an owner may look into.
ApiResult<EndpointView> OwnView(const Context& context, const net::Request& request,
                                const std::string& user) {
  auto view = context.controller->Find(request.Param("name"), user);
  if (!view.has_value() || view->record.owner != user)
    return std::unexpected(NotFoundError(request.Param("name")));
  return *std::move(view);
}

Result Workers(const Context& context, const net::Request& request, const std::string& user) {
  const auto view = OwnView(context, request, user);
  if (!view.has_value()) return std::unexpected(view.error());
  json::Array workers;
  for (const WorkerView& worker : view->workers)
    // A worker that is being started has no process yet.
    if (worker.state != WorkerState::kExited && worker.record.started_at > 0)
      workers.push_back(WorkerJson(worker));
  return json::Object{{"workers", std::move(workers)}};
}

Result Events(const Context& context, const net::Request& request, const std::string& user) {
  const auto view = OwnView(context, request, user);
  if (!view.has_value()) return std::unexpected(view.error());
  const auto after = QueryNumber(request, "after", 0, INT64_MAX, 0);
  if (!after.has_value()) return std::unexpected(after.error());
  const auto limit = QueryNumber(request, "limit", 1, kPageMax, kEventsPageDefault);
  if (!limit.has_value()) return std::unexpected(limit.error());
  const auto events = context.store->Events(view->record.id, *after, *limit);
  if (!events.has_value())
    return std::unexpected(ApiError{.status = 503, .text = events.error().message()});
  json::Array list;
  for (const EventRecord& event : *events) list.push_back(EventJson(event));
  return json::Object{{"events", std::move(list)}};
}

Result Logs(const Context& context, const net::Request& request, const std::string& user) {
  const auto view = OwnView(context, request, user);
  if (!view.has_value()) return std::unexpected(view.error());
  json::Array logs;
  for (const WorkerView& worker : view->workers) {
    const auto text = context.launcher->ReadLog(worker.record.id, kLogBytesShown);
    logs.push_back(json::Object{{"worker", worker.record.id}, {"text", text.value_or("")}});
  }
  return json::Object{{"logs", std::move(logs)}};
}

void Add(const Context& context, net::Router* router, std::string_view method,
         std::string_view pattern, Action action) {
  router->Add(method, pattern,
              [&context, action](const net::Request& request, const net::ResponseWriter& writer) {
                const auto user = UserOf(request);
                if (!user.has_value()) return SendError(writer, user.error());
                const auto answer = action(context, request, *user);
                answer.has_value() ? SendJson(writer, 200, *answer)
                                   : SendError(writer, answer.error());
              });
}

}  // namespace

void AddEndpointRoutes(const Context& context, net::Router* router) {
  constexpr std::string_view kAll = "/v1/llm/model-endpoints";
  const std::string one = std::string(kAll) + "/{name}";
  Add(context, router, "POST", kAll, Create);
  Add(context, router, "GET", kAll, List);
  Add(context, router, "GET", one, Get);
  Add(context, router, "PUT", one, Update);
  Add(context, router, "DELETE", one, Delete);
  Add(context, router, "POST", one + "/restart", Restart);
  Add(context, router, "GET", one + "/workers", Workers);
  Add(context, router, "GET", one + "/events", Events);
  Add(context, router, "GET", one + "/logs", Logs);
}

}  // namespace tessera::gateway
