// SPDX-License-Identifier: Apache-2.0
#include "gateway/api/endpoint_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace tessera::gateway {
namespace {

// What llm-engine reports for its LLM endpoints.
constexpr int64_t kConcurrentRequestsPerWorker = 250;

template <class T>
json::Value OrNull(const std::optional<T>& value) {
  return value.has_value() ? json::Value(*value) : json::Value();
}

json::Array TextList(const std::vector<std::string>& texts) {
  json::Array list;
  for (const std::string& text : texts) list.push_back(json::Value(text));
  return list;
}

/// Clients of llm-engine know five frameworks; for them sglang is the nearest of these.
std::string_view FrameworkFor(const EndpointSpec& spec) {
  return spec.inference_framework == "sglang" ? "vllm" : std::string_view(spec.inference_framework);
}

json::Value CallbackAuth(const EndpointSpec& spec) {
  const auto* auth = spec.default_callback_auth.if_object();
  if (auth == nullptr) return {};
  json::Object shown = *auth;
  for (const std::string_view secret : {"password", "key"})
    if (shown.contains(secret)) shown[secret] = "***";
  return shown;
}

json::Object DeploymentState(const EndpointView& view) {
  const EndpointSpec& spec = view.record.spec;
  const auto ready = std::ranges::count(view.workers, WorkerState::kReady, &WorkerView::state);
  const auto starting =
      std::ranges::count(view.workers, WorkerState::kStarting, &WorkerView::state);
  return {{"min_workers", spec.min_workers},
          {"max_workers", spec.max_workers},
          {"per_worker", spec.per_worker},
          {"concurrent_requests_per_worker", kConcurrentRequestsPerWorker},
          {"available_workers", ready},
          {"unavailable_workers", starting}};
}

/// Null unless enough of it is known for a client to read it.
json::Value ResourceState(const Resources& resources) {
  if (!resources.cpus.has_value() || !resources.memory.has_value()) return {};
  return json::Object{{"cpus", *resources.cpus},
                      {"gpus", resources.gpus.value_or(0)},
                      {"memory", *resources.memory},
                      {"gpu_type", OrNull(resources.gpu_type)},
                      {"storage", OrNull(resources.storage)},
                      {"nodes_per_worker", resources.nodes_per_worker.value_or(1)},
                      {"optimize_costs", OrNull(resources.optimize_costs)}};
}

json::Object SpecJson(const EndpointView& view, std::string_view user) {
  const EndpointRecord& record = view.record;
  const EndpointSpec& spec = record.spec;
  const bool is_owner = record.owner == user;
  return {{"id", record.id},
          {"name", spec.name},
          {"endpoint_type", spec.endpoint_type},
          {"destination", "tessera." + spec.name},
          {"deployment_name", spec.name},
          {"metadata", spec.metadata},
          {"bundle_name", spec.model_name},
          {"status", EndpointStatusName(view.status)},
          {"status_reason", view.reason},
          {"post_inference_hooks", TextList(spec.post_inference_hooks)},
          {"default_callback_url", is_owner ? OrNull(spec.default_callback_url) : json::Value()},
          {"default_callback_auth", is_owner ? CallbackAuth(spec) : json::Value()},
          {"labels", spec.labels},
          {"aws_role", nullptr},
          {"results_s3_bucket", nullptr},
          {"created_by", record.owner},
          {"created_at", IsoTime(record.created_at)},
          {"last_updated_at", IsoTime(record.updated_at)},
          {"deployment_state", DeploymentState(view)},
          {"resource_state", ResourceState(spec.resources)},
          {"num_queued_items", view.waiting_calls},
          {"public_inference", spec.public_inference},
          {"task_expires_seconds", OrNull(spec.task_expires_seconds)},
          {"queue_message_timeout_seconds", OrNull(spec.queue_message_timeout_seconds)}};
}

}  // namespace

std::string IsoTime(int64_t unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}+00:00", fmt::gmtime(seconds));
}

json::Object EndpointJson(const EndpointView& view, std::string_view user) {
  const EndpointSpec& spec = view.record.spec;
  return {{"id", view.record.id},
          {"name", spec.name},
          {"model_name", spec.model_name},
          {"source", spec.source},
          {"status", EndpointStatusName(view.status)},
          {"status_reason", view.reason},
          {"ready", view.is_ready},
          {"warnings", TextList(view.record.warnings)},
          {"inference_framework", FrameworkFor(spec)},
          {"inference_framework_image_tag", spec.inference_framework_image_tag},
          {"inference_framework_tag", spec.inference_framework_image_tag},
          {"num_shards", spec.num_shards},
          {"quantize", OrNull(spec.quantize)},
          {"checkpoint_path", OrNull(spec.checkpoint_path)},
          {"chat_template_override", OrNull(spec.chat_template_override)},
          {"task_expires_seconds", OrNull(spec.task_expires_seconds)},
          {"queue_message_timeout_seconds", OrNull(spec.queue_message_timeout_seconds)},
          {"engine_options", spec.engine},
          {"spec", SpecJson(view, user)}};
}

json::Object WorkerJson(const WorkerView& worker) {
  return {{"id", worker.record.id},
          {"pid", worker.record.pid > 0 ? json::Value(worker.record.pid) : json::Value()},
          {"pod", worker.record.pod.empty() ? json::Value() : json::Value(worker.record.pod)},
          {"state", WorkerStateName(worker.state)},
          {"since", IsoTime(worker.since)},
          {"version", worker.record.generation},
          {"running", worker.open_calls}};
}

json::Object EventJson(const EventRecord& event) {
  return {{"id", event.sequence},
          {"at", IsoTime(event.at)},
          {"kind", event.kind},
          {"text", event.text},
          {"actor", event.actor.empty() ? json::Value() : json::Value(event.actor)}};
}

}  // namespace tessera::gateway
