// SPDX-License-Identifier: Apache-2.0
//
// What callers read: copies.
#include <algorithm>
#include <utility>

#include "gateway/control/controller_impl.h"

namespace tessera::gateway {

EndpointView Controller::Impl::ViewOf(const Endpoint& endpoint) const {
  EndpointView view{.record = endpoint.record,
                    .status = endpoint.status,
                    .reason = endpoint.reason,
                    .is_ready = endpoint.is_ready};
  for (const auto& [id, worker] : endpoint.workers)
    view.workers.push_back({.record = worker.record,
                            .state = worker.state,
                            .since = worker.since_unix,
                            .open_calls = endpoint.route->OpenCalls(id)});
  const Route::Load load = endpoint.route->load();
  view.open_calls = load.open;
  view.waiting_calls = load.waiting;
  return view;
}

std::vector<EndpointView> Controller::Impl::List(std::string_view user) const {
  std::vector<EndpointView> views;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, endpoint] : endpoints_)
      if (MaySee(*endpoint, user)) views.push_back(ViewOf(*endpoint));
  }
  std::ranges::sort(views, {}, [](const EndpointView& view) { return view.record.id; });
  return views;
}

std::optional<EndpointView> Controller::Impl::Find(std::string_view name,
                                                   std::string_view user) const {
  const std::lock_guard lock(mutex_);
  const Endpoint* endpoint = FindLocked(name);
  if (endpoint == nullptr || !MaySee(*endpoint, user)) return std::nullopt;
  return ViewOf(*endpoint);
}

std::optional<EndpointView> Controller::Impl::FindById(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, endpoint] : endpoints_)
    if (endpoint->record.id == id) return ViewOf(*endpoint);
  return std::nullopt;
}

WayTo Controller::Impl::FindRoute(std::string_view name, std::string_view user) const {
  const std::lock_guard lock(mutex_);
  const Endpoint* endpoint = FindLocked(name);
  if (endpoint == nullptr || !MaySee(*endpoint, user) || endpoint->record.is_deleting) return {};
  return {endpoint->route, endpoint->record.spec.max_workers == 0};
}

std::vector<EndpointView> Controller::List(std::string_view user) const {
  return impl_->List(user);
}
std::optional<EndpointView> Controller::Find(std::string_view name, std::string_view user) const {
  return impl_->Find(name, user);
}
std::optional<EndpointView> Controller::FindById(std::string_view id) const {
  return impl_->FindById(id);
}
WayTo Controller::FindRoute(std::string_view name, std::string_view user) const {
  return impl_->FindRoute(name, user);
}

}  // namespace tessera::gateway
