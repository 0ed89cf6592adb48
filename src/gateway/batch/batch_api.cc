// SPDX-License-Identifier: Apache-2.0
#include "gateway/batch/batch_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gateway/api/caller.h"
#include "gateway/api/query.h"
#include "gateway/batch/batch_json.h"
#include "gateway/batch/make_batch.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

constexpr int64_t kResultsPage = 100, kResultsPageMax = 1000;
constexpr size_t kResultsBytesMax = 8u << 20;  // Of one page.

using Result = ApiResult<json::Object>;
/// What a route does for a known user; the answer is its object with 200.
using Call = Result (*)(const BatchServices&, const net::Request&, const std::string& user);

ApiError NoBatch(std::string_view id) {
  return {.status = 404, .text = fmt::format("Batch {} was not found.", id.substr(0, 200))};
}

ApiResult<BatchRecord> Own(const BatchServices& services, const net::Request& request,
                           const std::string& user) {
  auto record = services.batches->Find(request.Param("id"), user);
  if (!record.has_value()) return std::unexpected(NoBatch(request.Param("id")));
  return *std::move(record);
}

Result CreateV1(const BatchServices& services, const net::Request& request,
                const std::string& user) {
  const auto body = BodyObject(request, kRequestBytesMax);
  if (!body.has_value()) return std::unexpected(body.error());
  const auto made = MakeBatch(services, *body, BatchVersion::kV1, user);
  if (!made.has_value()) return std::unexpected(made.error());
  return json::Object{{"job_id", made->id}};
}

Result CreateV2(const BatchServices& services, const net::Request& request,
                const std::string& user) {
  const auto body = BodyObject(request, kRequestBytesMax);
  if (!body.has_value()) return std::unexpected(body.error());
  const auto made = MakeBatch(services, *body, BatchVersion::kV2, user);
  if (!made.has_value()) return std::unexpected(made.error());
  return BatchJobJson(*made);
}

Result Get(const BatchServices& services, const net::Request& request, const std::string& user) {
  const auto record = Own(services, request, user);
  if (!record.has_value()) return std::unexpected(record.error());
  return json::Object{{"job", BatchJobJson(*record)}};
}

/// `after` and `limit` of what is newest first.
ApiResult<std::pair<std::vector<BatchRecord>, bool>> Page(const net::Request& request,
                                                          std::vector<BatchRecord> records) {
  const auto limit = QueryNumber(request, "limit", 1, kPageMax, kPageMax);
  if (!limit.has_value()) return std::unexpected(limit.error());
  std::ranges::reverse(records);
  if (const auto after = request.Query("after")) {
    const auto found = std::ranges::find(records, *after, &BatchRecord::id);
    if (found == records.end())
      return std::unexpected(QueryError("after", "Input should be the id of a batch"));
    records.erase(records.begin(), found + 1);
  }
  const bool has_more = static_cast<int64_t>(records.size()) > *limit;
  if (has_more) records.resize(static_cast<size_t>(*limit));
  return std::pair(std::move(records), has_more);
}

Result List(const BatchServices& services, const net::Request& request, const std::string& user) {
  std::vector<BatchRecord> records = services.batches->List(user);
  if (const auto status = request.Query("status")) {
    constexpr BatchStatus kAll[] = {BatchStatus::kQueued, BatchStatus::kRunning,
                                    BatchStatus::kCompleted, BatchStatus::kFailed,
                                    BatchStatus::kCancelled};
    if (std::ranges::none_of(kAll,
                             [&](BatchStatus one) { return BatchStatusName(one) == *status; }))
      return std::unexpected(QueryError(
          "status", "Input should be 'queued', 'running', 'completed', 'failed' or 'cancelled'"));
    std::erase_if(records, [&](const BatchRecord& record) {
      return BatchStatusName(record.status) != *status;
    });
  }
  auto page = Page(request, std::move(records));
  if (!page.has_value()) return std::unexpected(page.error());
  json::Array jobs;
  for (const BatchRecord& record : page->first) jobs.push_back(BatchJobJson(record));
  return json::Object{{"jobs", std::move(jobs)}, {"has_more", page->second}};
}

Result Update(const BatchServices& services, const net::Request& request, const std::string& user) {
  const auto body = BodyObject(request, kSpecBytesMax);
  if (!body.has_value()) return std::unexpected(body.error());
  const auto record = Own(services, request, user);
  if (!record.has_value()) return std::unexpected(record.error());
  const auto id = json::GetString(*body, "job_id", record->id);
  if (!id.has_value() || *id != record->id)
    return std::unexpected(ApiError{.text = "job_id: is not the one of the path"});
  const auto priority = json::GetString(*body, "priority", record->priority);
  if (!priority.has_value())
    return std::unexpected(ApiError{.status = 422,
                                    .fields = {{"string_type",
                                                {"body", "priority"},
                                                "Input should be a valid string",
                                                json::Value()}}});
  const auto changed = services.batches->SetPriority(record->id, user, *priority);
  if (!changed.has_value()) return std::unexpected(changed.error());
  json::Object answer = BatchJobJson(*changed);
  answer["success"] = true;
  return answer;
}

Result Cancel(const BatchServices& services, const net::Request& request, const std::string& user) {
  const auto cancelled = services.batches->Cancel(request.Param("id"), user);
  if (!cancelled.has_value()) return std::unexpected(cancelled.error());
  return json::Object{{"success", *cancelled}};
}

Result Remove(const BatchServices& services, const net::Request& request, const std::string& user) {
  const auto removed = services.batches->Remove(request.Param("id"), user);
  if (!removed.has_value()) return std::unexpected(removed.error());
  return json::Object{{"deleted", true}};
}

/// Rows that have a result, in their order, from the one behind `after` on.
Result Results(const BatchServices& services, const net::Request& request,
               const std::string& user) {
  const auto record = Own(services, request, user);
  if (!record.has_value()) return std::unexpected(record.error());
  const auto limit = QueryNumber(request, "limit", 1, kResultsPageMax, kResultsPage);
  if (!limit.has_value()) return std::unexpected(limit.error());
  const auto after = QueryNumber(request, "after", -1, INT64_MAX, -1);
  if (!after.has_value()) return std::unexpected(after.error());
  const auto status = request.Query("status");
  if (status.has_value() && *status != "completed" && *status != "failed")
    return std::unexpected(QueryError("status", "Input should be 'completed' or 'failed'"));
  const auto folder = services.batches->OpenFolder(*record);
  if (!folder.has_value())
    return std::unexpected(ApiError{.status = 503, .text = folder.error().message()});
  json::Array results;
  size_t bytes = 0;
  bool has_more = false;
  const size_t begin = *after < 0 ? 0 : static_cast<size_t>(*after) + 1;
  for (size_t row = begin; row < (*folder)->rows() && !has_more; ++row) {
    if (!(*folder)->IsDone(row)) continue;
    const auto result = (*folder)->ResultOf(row);
    if (!result.has_value())
      return std::unexpected(ApiError{.status = 503, .text = result.error().message()});
    if (status.has_value() && result->has_failed() != (*status == "failed")) continue;
    has_more = static_cast<int64_t>(results.size()) >= *limit || bytes > kResultsBytesMax;
    if (has_more) break;
    json::Object shown = RowResultJson(*result);
    bytes += json::Serialize(shown).size();
    results.push_back(std::move(shown));
  }
  return json::Object{{"results", std::move(results)}, {"has_more", has_more}};
}

// --- OpenAI's ------------------------------------------------------------------------------

Result CreateOpenAi(const BatchServices& services, const net::Request& request,
                    const std::string& user) {
  const auto body = BodyObject(request, kSpecBytesMax);
  if (!body.has_value()) return std::unexpected(body.error());
  const auto made = MakeOpenAiBatch(services, *body, user);
  if (!made.has_value()) return std::unexpected(made.error());
  return OpenAiBatchJson(*made);
}

/// OpenAI's routes show OpenAI's batches.
ApiResult<BatchRecord> OwnLines(const BatchServices& services, const net::Request& request,
                                const std::string& user) {
  auto record = Own(services, request, user);
  if (record.has_value() && record->form != BatchForm::kLines)
    return std::unexpected(NoBatch(record->id));
  return record;
}

Result GetOpenAi(const BatchServices& services, const net::Request& request,
                 const std::string& user) {
  const auto record = OwnLines(services, request, user);
  if (!record.has_value()) return std::unexpected(record.error());
  return OpenAiBatchJson(*record);
}

Result ListOpenAi(const BatchServices& services, const net::Request& request,
                  const std::string& user) {
  std::vector<BatchRecord> records = services.batches->List(user);
  std::erase_if(records,
                [](const BatchRecord& record) { return record.form != BatchForm::kLines; });
  auto page = Page(request, std::move(records));
  if (!page.has_value()) return std::unexpected(page.error());
  const auto& shown = page->first;
  json::Array data;
  for (const BatchRecord& record : shown) data.push_back(OpenAiBatchJson(record));
  return json::Object{{"object", "list"},
                      {"data", std::move(data)},
                      {"first_id", shown.empty() ? json::Value() : json::Value(shown.front().id)},
                      {"last_id", shown.empty() ? json::Value() : json::Value(shown.back().id)},
                      {"has_more", page->second}};
}

Result CancelOpenAi(const BatchServices& services, const net::Request& request,
                    const std::string& user) {
  const auto record = OwnLines(services, request, user);
  if (!record.has_value()) return std::unexpected(record.error());
  const auto cancelled = services.batches->Cancel(record->id, user);
  if (!cancelled.has_value()) return std::unexpected(cancelled.error());
  if (!*cancelled)
    return std::unexpected(ApiError{.status = 409, .text = "The batch is over already"});
  return GetOpenAi(services, request, user);
}

net::Handler ForUser(const BatchServices* services, Call call) {
  return [services, call](const net::Request& request, const net::ResponseWriter& writer) {
    const auto user = UserOf(request);
    if (!user.has_value()) return SendError(writer, user.error());
    const auto answer = call(*services, request, *user);
    answer.has_value() ? SendJson(writer, 200, *answer) : SendError(writer, answer.error());
  };
}

}  // namespace

void AddBatchRoutes(const BatchServices* services, net::Router* router) {
  const std::string all = "/v2/batch-completions", one = all + "/{id}";
  const auto add = [&](std::string_view method, const std::string& path, Call call) {
    router->Add(method, path, ForUser(services, call));
  };
  add("POST", "/v1/llm/batch-completions", CreateV1);
  add("POST", all, CreateV2);
  add("GET", all, List);
  add("GET", one, Get);
  add("POST", one, Update);
  add("DELETE", one, Remove);
  add("GET", one + "/results", Results);
  add("POST", one + "/actions/cancel", Cancel);
  for (const std::string version : {"/v1", "/v2"}) {
    add("POST", version + "/batches", CreateOpenAi);
    add("GET", version + "/batches", ListOpenAi);
    add("GET", version + "/batches/{id}", GetOpenAi);
    add("POST", version + "/batches/{id}/cancel", CancelOpenAi);
  }
}

}  // namespace tessera::gateway
