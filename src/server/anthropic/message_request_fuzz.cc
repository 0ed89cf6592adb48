// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the body of a Messages call: a value or an error with a 4xx status, never a crash.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/anthropic/error.h"
#include "server/anthropic/fields.h"
#include "server/anthropic/message_request.h"
#include "support/fake_model.h"

namespace {

namespace anthropic = tessera::server::anthropic;

void Read(std::string_view body, unsigned api) {
  static const tessera::server::ServedModel model = tessera::testing::FakeServedModel();
  static const tessera::text::SpecialTokens specials(*model.tokenizer);
  const auto request = anthropic::ReadMessageRequest(body, api, model, specials, 0);
  if (request.has_value()) {
    TESSERA_CHECK(!request->prompt.empty());
    TESSERA_CHECK(api != anthropic::kMessages || request->fields.max_tokens.has_value());
    return;
  }
  TESSERA_CHECK(request.error().http_status >= 400 && request.error().http_status < 500);
  (void)tessera::json::Serialize(anthropic::ErrorBody(request.error(), "req-0"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  Read(body, anthropic::kMessages);
  Read(body, anthropic::kCountTokens);
  return 0;
}
