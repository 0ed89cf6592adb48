// SPDX-License-Identifier: Apache-2.0
#include "gateway/files/files_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"
#include "gateway/api/caller.h"
#include "gateway/api/query.h"
#include "gateway/files/file_json.h"
#include "gateway/files/upload.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

constexpr std::array<std::string_view, 2> kRoots = {"/v1/files", "/v2/files"};

ApiError NotFoundError() {
  return {.status = 404, .text = "The specified file could not be found."};
}

ApiError StoreError(const Status& status) {
  log::error("gateway: files: {}", status.ToString());
  return {.status = 503, .text = "The files could not be read: " + status.message()};
}

/// What a route does with a file of the caller.
ApiResult<FileRecord> OwnFile(const FileServices& files, const net::Request& request,
                              const std::string& user) {
  auto found = files.store->Find(user, request.Param("id"));
  if (!found.has_value()) return std::unexpected(StoreError(found.error()));
  if (!found->has_value()) return std::unexpected(NotFoundError());
  return **std::move(found);
}

/// A form that came without a receiver: one without a body, or none at all.
void RefuseUpload(FileServices& /*files*/, const net::Request& request,
                  const net::ResponseWriter& writer, const std::string& /*user*/) {
  const auto boundary = MultipartBoundary(request.headers.Find("Content-Type").value_or(""));
  if (!boundary.has_value())
    return SendError(writer, {.status = 415,
                              .text = boundary.error().message() + ", with the bytes in its part "
                                                                   "\"file\""});
  SendError(writer, {.status = 422,
                     .fields = {{"missing", {"body", "file"}, "Field required", json::Value()}}});
}

/// `after` and `limit` of a list that is in its order.
ApiResult<json::Object> Page(const net::Request& request, std::vector<FileRecord> records) {
  const auto limit = QueryNumber(request, "limit", 1, kPageMax, kPageMax);
  if (!limit.has_value()) return std::unexpected(limit.error());
  auto begin = records.begin();
  if (const auto after = request.Query("after")) {
    begin = std::ranges::find(records, *after, &FileRecord::id);
    if (begin == records.end())
      return std::unexpected(QueryError("after", "Input should be the id of a file"));
    ++begin;
  }
  const auto count = std::min<int64_t>(*limit, records.end() - begin);
  json::Array shown;
  for (auto record = begin; record != begin + count; ++record) shown.push_back(FileJson(*record));
  json::Object answer{{"object", "list"},
                      {"has_more", begin + count != records.end()},
                      {"first_id", count > 0 ? json::Value(begin->id) : json::Value()},
                      {"last_id", count > 0 ? json::Value(begin[count - 1].id) : json::Value()}};
  answer["files"] = shown;
  answer["data"] = std::move(shown);
  return answer;
}

void List(FileServices& files, const net::Request& request, const net::ResponseWriter& writer,
          const std::string& user) {
  auto records = files.store->List(user);
  if (!records.has_value()) return SendError(writer, StoreError(records.error()));
  if (const auto purpose = request.Query("purpose"))
    std::erase_if(*records, [&](const FileRecord& record) { return record.purpose != *purpose; });
  const auto order = request.Query("order").value_or("desc");
  if (order == "desc")
    std::ranges::reverse(*records);
  else if (order != "asc")
    return SendError(writer, QueryError("order", "Input should be 'asc' or 'desc'"));
  const auto page = Page(request, *std::move(records));
  page.has_value() ? SendJson(writer, 200, *page) : SendError(writer, page.error());
}

void Get(FileServices& files, const net::Request& request, const net::ResponseWriter& writer,
         const std::string& user) {
  const auto record = OwnFile(files, request, user);
  record.has_value() ? SendJson(writer, 200, FileJson(*record)) : SendError(writer, record.error());
}

void Delete(FileServices& files, const net::Request& request, const net::ResponseWriter& writer,
            const std::string& user) {
  const std::string id(request.Param("id"));
  const auto removed = files.store->Remove(user, id);
  if (!removed.has_value()) return SendError(writer, StoreError(removed.error()));
  if (!*removed) return SendError(writer, NotFoundError());
  SendJson(writer, 200, {{"deleted", true}, {"id", id}, {"object", "file"}});
}

/// llm-engine's client takes anything and wants JSON; OpenAI's asks for the bytes.
bool WantsBytes(const net::Request& request) {
  if (request.Query("raw").has_value()) return true;
  const std::string_view accept = request.headers.Find("Accept").value_or("*/*");
  return !accept.contains("*/*") && !accept.contains("application/json");
}

void SendText(FileServices& files, const FileRecord& record, const net::ResponseWriter& writer) {
  constexpr std::string_view kHint =
      "ask for the bytes with ?raw=1 or Accept: "
      "application/octet-stream";
  if (static_cast<uint64_t>(record.bytes) > kFileTextBytesMax)
    return SendError(writer, {.status = 413,
                              .text = fmt::format("The file has {} bytes, too many for a JSON "
                                                  "text: {}",
                                                  record.bytes, kHint)});
  const auto text = ReadFile(files.store->PathOf(record), kFileTextBytesMax);
  if (!text.has_value()) return SendError(writer, StoreError(text.error()));
  if (!IsUtf8(*text))
    return SendError(writer,
                     {.status = 415, .text = fmt::format("The file is no UTF-8 text: {}", kHint)});
  SendJson(writer, 200, {{"id", record.id}, {"content", *text}});
}

void Content(FileServices& files, const net::Request& request, const net::ResponseWriter& writer,
             const std::string& user) {
  const auto record = OwnFile(files, request, user);
  if (!record.has_value()) return SendError(writer, record.error());
  if (!WantsBytes(request)) return SendText(files, *record, writer);
  // Never shown by a browser as a page of this server.
  const net::Headers headers = {{"Content-Type", "application/octet-stream"},
                                {"Content-Disposition", "attachment; filename*=UTF-8''" +
                                                            net::PercentEncode(record->filename)},
                                {"X-Content-Type-Options", "nosniff"},
                                {"ETag", "\"" + record->sha256 + "\""}};
  if (const Status sent =
          files.sender->Send(files.store->PathOf(*record), request, headers, writer);
      !sent.ok())
    SendError(writer, StoreError(sent));
}

using Action = void (*)(FileServices&, const net::Request&, const net::ResponseWriter&,
                        const std::string& user);

net::Handler ForUser(FileServices* files, Action action) {
  return [files, action](const net::Request& request, const net::ResponseWriter& writer) {
    const auto user = UserOf(request);
    if (!user.has_value()) return SendError(writer, user.error());
    action(*files, request, writer, *user);
  };
}

}  // namespace

void AddFileRoutes(FileServices* files, net::Router* router) {
  for (const std::string_view root : kRoots) {
    const std::string all(root), one = all + "/{id}";
    router->Add("POST", all, ForUser(files, RefuseUpload));
    router->Add("GET", all, ForUser(files, List));
    router->Add("GET", one, ForUser(files, Get));
    router->Add("DELETE", one, ForUser(files, Delete));
    router->Add("GET", one + "/content", ForUser(files, Content));
  }
}

std::expected<net::BodyPlan, net::HttpError> PlanUpload(FileServices* files,
                                                        const net::Request& head) {
  const bool is_upload =
      head.method == "POST" && std::ranges::find(kRoots, head.path) != kRoots.end();
  const auto boundary = MultipartBoundary(head.headers.Find("Content-Type").value_or(""));
  if (!is_upload || !boundary.has_value()) return net::BodyPlan{};
  auto user = UserOf(head);
  if (!user.has_value())
    return std::unexpected(net::HttpError{user.error().status, "unauthorized", user.error().text});
  return net::BodyPlan{
      .receiver = std::make_shared<Upload>(files->store.get(), *std::move(user), *boundary),
      .bytes_max = files->store->limits().file_bytes_max + kFormFramingBytesMax};
}

}  // namespace tessera::gateway
