// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the body of a Responses call: a value that fits the context, or an error with a 4xx
// status, never a crash.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/openai/error.h"
#include "server/responses/response_request.h"
#include "support/fake_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kContext = 256;
  static const tessera::server::ServedModel model = tessera::testing::ThinkingModel();
  static const tessera::text::SpecialTokens specials(*model.tokenizer);
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto request =
      tessera::server::responses::ReadResponseRequest(body, model, specials, 0, kContext);
  if (request.has_value()) {
    const auto length = static_cast<int64_t>(request->chat.prompt.ids.size());
    TESSERA_CHECK(length > 0 && length + request->chat.fields.max_tokens.value_or(1) <= kContext);
    return 0;
  }
  TESSERA_CHECK(request.error().http_status >= 400 && request.error().http_status < 500);
  (void)tessera::json::Serialize(ErrorBody(request.error()));
  return 0;
}
