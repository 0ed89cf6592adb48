// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the body of a Messages call: a value or an error with a 4xx status, never a crash.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/anthropic/error.h"
#include "server/anthropic/message_request.h"
#include "support/fake_model.h"

namespace {

namespace anthropic = tessera::server::anthropic;

const tessera::server::ServedModel& Model() {
  static const tessera::server::ServedModel model = tessera::testing::ThinkingModel();
  return model;
}

void Check(const tessera::server::openai::ApiError& error) {
  TESSERA_CHECK(error.http_status >= 400 && error.http_status < 500);
  (void)tessera::json::Serialize(anthropic::ErrorBody(error, "req-0"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tessera::net::Request asked;
  asked.body.assign(reinterpret_cast<const char*>(data), size);
  static const tessera::text::SpecialTokens specials(*Model().tokenizer);
  const auto request = anthropic::ReadMessageRequest(asked, Model(), specials, 0);
  if (request.has_value()) {
    TESSERA_CHECK(!request->chat.prompt.ids.empty());
    TESSERA_CHECK(request->chat.fields.max_tokens.has_value());
  } else {
    Check(request.error());
  }
  const auto count = anthropic::ReadCountRequest(asked, Model(), specials, 0);
  if (!count.has_value()) Check(count.error());
  return 0;
}
