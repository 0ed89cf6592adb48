// SPDX-License-Identifier: Apache-2.0
//
// One checked value -> its place in an EndpointSpec, and back: for whoever walks the table of
// fields. Pure functions.
#pragma once

#include "base/json.h"
#include "gateway/spec/endpoint_spec.h"
#include "gateway/spec/field_table.h"

namespace tessera::gateway {

/// `value` passed CheckField; null puts back what an absent field stands for.
void AssignField(const Field& field, const json::Value& value, EndpointSpec* spec);

/// Null when it is absent.
json::Value FieldValue(const Field& field, const EndpointSpec& spec);

}  // namespace tessera::gateway
