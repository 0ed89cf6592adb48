// SPDX-License-Identifier: Apache-2.0
//
// The fields of an endpoint for people, out of the table that validates them: the block of
// docs/endpoints.md, and the page that a gateway serves. Pure functions.
#pragma once

#include <string>

#include "gateway/spec/field_table.h"

namespace tessera::gateway::openapi {

/// "integer, 0 to 250", "one of `a`, `b`".
std::string RuleText(const Field& field);
/// As JSON; "required", or "-" for none.
std::string DefaultText(const Field& field);
/// "Has no effect, and a warning says so: REASON." for fields without one; else empty.
std::string EffectText(const Field& field);

/// Markdown: a table of the fields of an endpoint, one of the server's options.
std::string FieldReference();
/// HTML: routes and fields.
std::string ReferencePage();

}  // namespace tessera::gateway::openapi
