// SPDX-License-Identifier: Apache-2.0
#include "gateway/spec/assign_field.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>
#include <variant>

#include "base/check.h"

namespace tessera::gateway {
namespace {

template <class T>
using Of = T EndpointSpec::*;
template <class T>
using OfResources = T Resources::*;
using Member = std::variant<Of<std::string>, Of<std::optional<std::string>>, Of<int64_t>,
                            Of<std::optional<int64_t>>, Of<bool>, Of<json::Object>, Of<json::Value>,
                            Of<std::vector<std::string>>, OfResources<std::optional<std::string>>,
                            OfResources<std::optional<int64_t>>, OfResources<std::optional<bool>>>;

struct Place {
  std::string_view name;
  Member member;
};

const Place kPlaces[] = {
    {"name", &EndpointSpec::name},
    {"model_name", &EndpointSpec::model_name},
    {"source", &EndpointSpec::source},
    {"inference_framework", &EndpointSpec::inference_framework},
    {"inference_framework_image_tag", &EndpointSpec::inference_framework_image_tag},
    {"num_shards", &EndpointSpec::num_shards},
    {"endpoint_type", &EndpointSpec::endpoint_type},
    {"quantize", &EndpointSpec::quantize},
    {"checkpoint_path", &EndpointSpec::checkpoint_path},
    {"chat_template_override", &EndpointSpec::chat_template_override},
    {"cpus", &Resources::cpus},
    {"memory", &Resources::memory},
    {"storage", &Resources::storage},
    {"gpus", &Resources::gpus},
    {"gpu_type", &Resources::gpu_type},
    {"nodes_per_worker", &Resources::nodes_per_worker},
    {"optimize_costs", &Resources::optimize_costs},
    {"min_workers", &EndpointSpec::min_workers},
    {"max_workers", &EndpointSpec::max_workers},
    {"per_worker", &EndpointSpec::per_worker},
    {"labels", &EndpointSpec::labels},
    {"metadata", &EndpointSpec::metadata},
    {"post_inference_hooks", &EndpointSpec::post_inference_hooks},
    {"default_callback_url", &EndpointSpec::default_callback_url},
    {"default_callback_auth", &EndpointSpec::default_callback_auth},
    {"billing_tags", &EndpointSpec::billing_tags},
    {"prewarm", &EndpointSpec::prewarm},
    {"high_priority", &EndpointSpec::high_priority},
    {"enable_startup_metrics", &EndpointSpec::enable_startup_metrics},
    {"public_inference", &EndpointSpec::public_inference},
    {"task_expires_seconds", &EndpointSpec::task_expires_seconds},
    {"queue_message_timeout_seconds", &EndpointSpec::queue_message_timeout_seconds},
};

const Member& MemberOf(std::string_view name) {
  const auto* place = std::ranges::find(kPlaces, name, &Place::name);
  TESSERA_CHECK(place != std::end(kPlaces));  // The tables agree: a test goes through all fields.
  return place->member;
}

template <class T, class Spec>
auto& Get(Of<T> member, Spec& spec) {
  return spec.*member;
}
template <class T, class Spec>
auto& Get(OfResources<T> member, Spec& spec) {
  return spec.resources.*member;
}

int64_t AsInteger(const json::Value& value) {
  if (const auto* number = value.if_int64()) return *number;
  if (const auto* number = value.if_uint64()) return static_cast<int64_t>(*number);
  return static_cast<int64_t>(value.get_double());
}

/// Text as it is; numbers (of a quantity) as they would be written.
std::string AsText(const json::Value& value) {
  if (const auto* text = value.if_string()) return std::string(*text);
  const bool is_whole = value.is_number() && !value.is_double();
  if (is_whole) return std::to_string(AsInteger(value));
  const double number = value.get_double();
  if (number == static_cast<double>(static_cast<int64_t>(number)))
    return std::to_string(static_cast<int64_t>(number));
  return json::Serialize(value);
}

template <class T>
T Read(const json::Value& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return AsText(value);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return AsInteger(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.get_bool();
  } else if constexpr (std::is_same_v<T, json::Object>) {
    return value.get_object();
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    std::vector<std::string> list;
    for (const json::Value& element : value.get_array()) list.push_back(AsText(element));
    return list;
  } else {
    return T(Read<typename T::value_type>(value));  // std::optional
  }
}

json::Value Write(const json::Value& value) {
  return value;
}
json::Value Write(const json::Object& value) {
  return value;
}
json::Value Write(const std::string& value) {
  return json::Value(value);
}
json::Value Write(int64_t value) {
  return value;
}
json::Value Write(bool value) {
  return value;
}
json::Value Write(const std::vector<std::string>& value) {
  json::Array list;
  for (const std::string& element : value) list.push_back(json::Value(element));
  return list;
}
template <class T>
json::Value Write(const std::optional<T>& value) {
  return value.has_value() ? Write(*value) : json::Value();
}

}  // namespace

void AssignField(const Field& field, const json::Value& value, EndpointSpec* spec) {
  if (field.use == FieldUse::kEngine) {
    if (value.is_null())
      spec->engine.erase(field.name);
    else
      spec->engine[field.name] = value;
    return;
  }
  static const EndpointSpec defaults;
  std::visit(
      [&](auto member) {
        auto& place = Get(member, *spec);
        using T = std::remove_reference_t<decltype(place)>;
        if constexpr (std::is_same_v<T, json::Value>)
          place = value;
        else if (value.is_null())
          place = Get(member, defaults);
        else
          place = Read<T>(value);
      },
      MemberOf(field.name));
}

json::Value FieldValue(const Field& field, const EndpointSpec& spec) {
  if (field.use == FieldUse::kEngine) {
    const json::Value* value = json::Find(spec.engine, field.name);
    return value == nullptr ? json::Value() : *value;
  }
  return std::visit([&](auto member) { return Write(Get(member, spec)); }, MemberOf(field.name));
}

}  // namespace tessera::gateway
