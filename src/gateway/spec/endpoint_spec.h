// SPDX-License-Identifier: Apache-2.0
//
// EndpointSpec: what somebody wants of one endpoint, as create and update requests say it
// (llm-engine's LLM endpoint API). Plain value; it is what the store keeps and the reconciler
// compares the world with. Nothing in it says what runs.
//
// `name` is the endpoint's own handle, unique in a gateway and used by every later call;
// `model_name` says which model it serves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace tessera::gateway {

/// As asked for; absent means that the gateway fills it from the model's plan.
struct Resources {
  std::optional<std::string> cpus{};  // Quantities: resources.h.
  std::optional<std::string> memory{};
  std::optional<std::string> storage{};
  std::optional<int64_t> gpus{};
  std::optional<std::string> gpu_type{};
  std::optional<int64_t> nodes_per_worker{};
  std::optional<bool> optimize_costs{};

  bool operator==(const Resources&) const = default;
};

struct EndpointSpec {
  std::string name;
  std::string model_name;
  std::string source = "hugging_face";
  std::string inference_framework = "vllm";
  std::string inference_framework_image_tag = "latest";
  std::string endpoint_type = "streaming";
  int64_t num_shards = 1;
  std::optional<std::string> quantize{};
  std::optional<std::string> checkpoint_path{};
  std::optional<std::string> chat_template_override{};
  Resources resources{};
  int64_t min_workers = 0;
  int64_t max_workers = 1;
  int64_t per_worker = 1;  // Calls that a worker should have open: drives scaling.
  json::Object labels{};
  json::Object metadata{};
  std::vector<std::string> post_inference_hooks{};
  std::optional<std::string> default_callback_url{};
  json::Value default_callback_auth{};  // Null or an object.
  json::Value billing_tags{};           // The same.
  bool prewarm = true;
  bool enable_startup_metrics = true;
  bool high_priority = false;
  bool public_inference = true;
  std::optional<int64_t> task_expires_seconds{};
  std::optional<int64_t> queue_message_timeout_seconds{};
  /// Options of the inference server by their vLLM names (max_model_len, ...), as given.
  json::Object engine{};

  bool operator==(const EndpointSpec&) const = default;
};

/// Every field by its API name; absent ones as null. Reads back with ReadSpec as the same value.
json::Object WriteSpec(const EndpointSpec& spec);

/// Whether going from `before` to `after` needs new worker processes: anything but counts, names
/// of teams and who may call.
bool NeedsNewWorkers(const EndpointSpec& before, const EndpointSpec& after);

}  // namespace tessera::gateway
