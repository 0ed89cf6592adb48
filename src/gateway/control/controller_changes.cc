// SPDX-License-Identifier: Apache-2.0
//
// What callers change: each change is stored before it is answered.
#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "gateway/control/controller_impl.h"
#include "gateway/control/worker_arguments.h"
#include "gateway/limits.h"

namespace tessera::gateway {
namespace {

ApiError Refuse(int status, std::string text) {
  return {.status = status, .text = std::move(text)};
}

ApiError NoEndpoint(std::string_view name) {
  // The text that clients of this API know, two blanks included.
  return Refuse(404, fmt::format("Model Endpoint {}  was not found.", name.substr(0, 200)));
}

ApiError NotStored(const Status& status) {
  log::error("gateway: {}", status.ToString());
  return Refuse(503, "The change could not be stored and was not made: " + status.message());
}

}  // namespace

ApiResult<std::string> Controller::Impl::Create(const AskedSpec& asked, const std::string& owner) {
  if (const auto arguments = WorkerArguments(asked.spec, models_, options_.template_dir);
      !arguments.has_value())
    return std::unexpected(Refuse(400, arguments.error().ToString()));
  const std::lock_guard change(changes_);
  {
    const std::lock_guard lock(mutex_);
    if (FindLocked(asked.spec.name) != nullptr)
      return std::unexpected(Refuse(400, "The specified model endpoint already exists."));
    if (static_cast<int64_t>(endpoints_.size()) >= kEndpointsMax)
      return std::unexpected(Refuse(
          400, fmt::format("There are {} endpoints already; delete some", endpoints_.size())));
  }
  EndpointRecord record{.id = NewId("end_"), .owner = owner, .spec = asked.spec};
  record.warnings = asked.warnings;
  for (std::string& wish : UnmetWishes(asked.spec)) record.warnings.push_back(std::move(wish));
  record.created_at = record.updated_at = clock_.UnixSeconds();
  const EventRecord event{.sequence = 0,
                          .endpoint_id = record.id,
                          .at = record.created_at,
                          .kind = "created",
                          .text = fmt::format("created with model {}", record.spec.model_name),
                          .actor = owner};
  if (const Status stored = store_.InsertEndpoint(record, event); !stored.ok())
    return std::unexpected(NotStored(stored));
  std::string id = record.id;
  {
    const std::lock_guard lock(mutex_);
    AddLocked(std::move(record));
  }
  Wake();
  return id;
}

ApiResult<std::string> Controller::Impl::Change(
    std::string_view name, const std::string& user, std::string kind,
    const std::function<ApiResult<void>(EndpointRecord*)>& change) {
  const std::lock_guard one_at_a_time(changes_);
  EndpointRecord record;
  {
    const std::lock_guard lock(mutex_);
    const Endpoint* endpoint = FindLocked(name);
    if (endpoint == nullptr || endpoint->record.owner != user)
      return std::unexpected(NoEndpoint(name));
    record = endpoint->record;
  }
  const int64_t revision = record.revision++;
  if (auto changed = change(&record); !changed.has_value())
    return std::unexpected(std::move(changed).error());
  record.updated_at = clock_.UnixSeconds();
  const EventRecord event{.sequence = 0,
                          .endpoint_id = record.id,
                          .at = record.updated_at,
                          .kind = kind,
                          .text = fmt::format("{}; this is change {}", kind, record.revision),
                          .actor = user};
  if (const Status stored = store_.UpdateEndpoint(record, revision, event); !stored.ok())
    return std::unexpected(NotStored(stored));
  {
    const std::lock_guard lock(mutex_);
    Endpoint* endpoint = FindLocked(name);
    TESSERA_CHECK(endpoint != nullptr);  // Only a deletion removes it, and that is a change.
    endpoint->record = record;
    endpoint->status =
        record.is_deleting ? EndpointStatus::kDeleteInProgress : EndpointStatus::kUpdatePending;
    if (record.is_deleting) endpoint->route->Close(NotFound("the endpoint is deleted"));
  }
  Wake();
  return record.id;
}

ApiResult<std::string> Controller::Create(const AskedSpec& asked, const std::string& owner) {
  return impl_->Create(asked, owner);
}

ApiResult<std::string> Controller::Update(std::string_view name, const json::Object& body,
                                          const std::string& user) {
  return impl_->Change(name, user, "updated", [&](EndpointRecord* record) -> ApiResult<void> {
    if (record->is_deleting) return std::unexpected(NoEndpoint(name));
    auto asked = ReadUpdate(record->spec, body);
    if (!asked.has_value()) return std::unexpected(std::move(asked).error());
    if (NeedsNewWorkers(record->spec, asked->spec)) ++record->generation;
    record->spec = std::move(asked->spec);
    record->warnings = std::move(asked->warnings);
    for (std::string& wish : UnmetWishes(record->spec)) record->warnings.push_back(std::move(wish));
    return {};
  });
}

ApiResult<void> Controller::Delete(std::string_view name, const std::string& user) {
  const auto done = impl_->Change(name, user, "deleted", [&](EndpointRecord* record) {
    record->is_deleting = true;
    return ApiResult<void>();
  });
  if (!done.has_value()) return std::unexpected(done.error());
  return {};
}

ApiResult<void> Controller::Restart(std::string_view name, const std::string& user) {
  const auto done = impl_->Change(name, user, "restarted", [&](EndpointRecord* record) {
    ++record->generation;
    return ApiResult<void>();
  });
  if (!done.has_value()) return std::unexpected(done.error());
  return {};
}

}  // namespace tessera::gateway
