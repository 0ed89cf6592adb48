// SPDX-License-Identifier: Apache-2.0
#include "gateway/download/download_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "gateway/api/caller.h"
#include "gateway/download/model_files.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

constexpr std::string_view kRoot = "/v1/llm/model-files";
constexpr std::string_view kFormat = "hugging_face";

std::unexpected<ApiError> Refuse(int status, std::string text) {
  return std::unexpected(ApiError{.status = status, .text = std::move(text)});
}

ApiError ErrorOf(const Status& status) {
  const bool is_absent = status.code() == Code::kNotFound;
  return {.status = is_absent ? 404 : 400, .text = "model_name: " + status.message()};
}

/// A text of the body; 422 for another type, or when it is needed and not there.
ApiResult<std::string> BodyText(const json::Object& body, std::string_view name, bool is_needed) {
  const json::Value* value = json::Find(body, name);
  const auto* text = value == nullptr ? nullptr : value->if_string();
  if (text != nullptr) return std::string(*text);
  if (value == nullptr && !is_needed) return std::string();
  return std::unexpected(
      ApiError{.status = 422,
               .fields = {{value == nullptr ? "missing" : "string_type",
                           {"body", std::string(name)},
                           value == nullptr ? "Field required" : "Input should be a valid string",
                           json::Value()}}});
}

/// Of one file; also what is signed.
std::string Thing(std::string_view endpoint_id, std::string_view file) {
  return fmt::format("{}\n{}", endpoint_id, file);
}

std::string Escape(std::string_view file) {
  std::string escaped;
  while (true) {
    const size_t slash = file.find('/');
    escaped += net::PercentEncode(file.substr(0, slash));
    if (slash == std::string_view::npos) return escaped;
    escaped += '/';
    file.remove_prefix(slash + 1);
  }
}

ApiResult<json::Object> Urls(const DownloadServices& services, const net::Request& request,
                             const std::string& user) {
  const auto body = BodyObject(request, kSpecBytesMax);
  if (!body.has_value()) return std::unexpected(body.error());
  const auto name = BodyText(*body, "model_name", /*is_needed=*/true);
  if (!name.has_value()) return std::unexpected(name.error());
  const auto format = BodyText(*body, "download_format", /*is_needed=*/false);
  if (!format.has_value()) return std::unexpected(format.error());
  if (!format->empty() && *format != kFormat)
    return Refuse(400, fmt::format("download_format: expected {}, the files as they are", kFormat));
  const auto view = services.context->controller->Find(*name, user);
  if (!view.has_value() || view->record.owner != user)
    return Refuse(404, fmt::format("Model Endpoint {}  was not found.", name->substr(0, 200)));
  const auto files = FindModelFiles(view->record.spec, *services.models, services.hub_cache);
  if (!files.has_value()) return std::unexpected(ErrorOf(files.error()));
  const int64_t expires = services.context->clock->UnixSeconds() + kDownloadSeconds;
  const std::string base =
      fmt::format("{}://{}{}/{}", services.has_tls ? "https" : "http",
                  request.headers.Find("Host").value_or("localhost"), kRoot, view->record.id);
  json::Object urls;
  for (const ModelFile& file : *files)
    urls[file.name] = fmt::format("{}/{}/{}", base,
                                  services.signer.Sign(Thing(view->record.id, file.name), expires),
                                  Escape(file.name));
  return json::Object{{"urls", std::move(urls)}, {"expires_at", expires}};
}

/// The signature is the login. What it names is looked for again: an endpoint that is deleted, or
/// whose model is another one now, gives nothing.
void SendModelFile(const DownloadServices& services, const net::Request& request,
                   const net::ResponseWriter& writer) {
  const std::string_view id = request.Param("id"), name = request.Param("file");
  if (!services.signer.Check(Thing(id, name), request.Param("token"),
                             services.context->clock->UnixSeconds()))
    return SendError(writer, {.status = 403,
                              .text = "The address has expired or was changed; ask for a new one"});
  const auto view = services.context->controller->FindById(id);
  const auto files = view.has_value()
                         ? FindModelFiles(view->record.spec, *services.models, services.hub_cache)
                         : Fail(NotFound("the endpoint is deleted"));
  if (!files.has_value()) return SendError(writer, ErrorOf(files.error()));
  const auto file = std::ranges::find(*files, name, &ModelFile::name);
  const ApiError gone{.status = 404, .text = "The file is there no more"};
  if (file == files->end()) return SendError(writer, gone);
  const std::string base_name(name.substr(name.rfind('/') + 1));
  const net::Headers headers = {
      {"Content-Type", "application/octet-stream"},
      {"Content-Disposition", "attachment; filename*=UTF-8''" + net::PercentEncode(base_name)},
      {"X-Content-Type-Options", "nosniff"}};
  if (const Status sent = services.sender->Send(file->path, request, headers, writer); !sent.ok()) {
    log::error("gateway: a download: {}", sent.ToString());
    SendError(writer, gone);
  }
}

}  // namespace

void AddDownloadRoutes(const DownloadServices* services, net::Router* router) {
  router->Add("POST", "/v1/llm/model-endpoints/download",
              [services](const net::Request& request, const net::ResponseWriter& writer) {
                const auto user = UserOf(request);
                if (!user.has_value()) return SendError(writer, user.error());
                const auto urls = Urls(*services, request, *user);
                urls.has_value() ? SendJson(writer, 200, *urls) : SendError(writer, urls.error());
              });
  router->Add("GET", std::string(kRoot) + "/{id}/{token}/{file...}",
              [services](const net::Request& request, const net::ResponseWriter& writer) {
                SendModelFile(*services, request, writer);
              });
}

}  // namespace tessera::gateway
