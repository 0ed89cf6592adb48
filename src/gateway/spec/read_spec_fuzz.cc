// SPDX-License-Identifier: Apache-2.0
//
// Any body of a create or an update: what is accepted is written and read back as the same value,
// keeps every rule when it is said again as an update, and an update that says nothing changes
// nothing; what is refused names something.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "gateway/limits.h"
#include "gateway/spec/read_spec.h"

namespace {

namespace json = tessera::json;
using tessera::gateway::ApiError;
using tessera::gateway::EndpointSpec;
using tessera::gateway::IsEndpointName;
using tessera::gateway::kSpecBytesMax;
using tessera::gateway::kWorkersMax;
using tessera::gateway::ReadCreate;
using tessera::gateway::ReadSpec;
using tessera::gateway::ReadUpdate;

void CheckError(const ApiError& error) {
  TESSERA_CHECK(error.status == 422 || error.status == 400);
  TESSERA_CHECK(!error.text.empty() || !error.fields.empty());
  TESSERA_CHECK(json::Parse(ErrorBody(error), {}, "error").has_value());
}

void CheckSpec(const EndpointSpec& spec) {
  TESSERA_CHECK(IsEndpointName(spec.name));
  TESSERA_CHECK(0 <= spec.min_workers && spec.min_workers <= spec.max_workers &&
                spec.max_workers <= kWorkersMax && spec.per_worker >= 1);
  const auto again = ReadSpec(WriteSpec(spec));
  TESSERA_CHECK(again.has_value() && *again == spec);
  const auto same = ReadUpdate(spec, {});
  TESSERA_CHECK(same.has_value() && same->spec == spec && same->warnings.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto body = json::Parse(text, {.max_bytes = kSpecBytesMax}, "fuzz");
  if (!body.has_value() || !body->is_object()) return 0;
  const auto created = ReadCreate(body->get_object());
  if (created.has_value())
    for (const std::string& warning : created->warnings) TESSERA_CHECK(tessera::IsUtf8(warning));
  created.has_value() ? CheckSpec(created->spec) : CheckError(created.error());
  const EndpointSpec before = {.name = "a", .model_name = "m"};
  const auto updated = ReadUpdate(before, body->get_object());
  updated.has_value() ? CheckSpec(updated->spec) : CheckError(updated.error());
  return 0;
}
