// SPDX-License-Identifier: Apache-2.0
#include "gateway/spec/endpoint_spec.h"

#include "gateway/spec/assign_field.h"
#include "gateway/spec/field_table.h"

namespace tessera::gateway {

json::Object WriteSpec(const EndpointSpec& spec) {
  json::Object object;
  for (const Field& field : EndpointFields())
    if (field.use != FieldUse::kEngine) object[field.name] = FieldValue(field, spec);
  object["engine"] = spec.engine;
  return object;
}

bool NeedsNewWorkers(const EndpointSpec& before, const EndpointSpec& after) {
  return before.model_name != after.model_name || before.num_shards != after.num_shards ||
         before.quantize != after.quantize || before.checkpoint_path != after.checkpoint_path ||
         before.chat_template_override != after.chat_template_override ||
         before.resources != after.resources || before.engine != after.engine;
}

}  // namespace tessera::gateway
