// SPDX-License-Identifier: Apache-2.0
#include "server/openapi/components.h"

namespace tessera::server::openapi {
namespace {

constexpr Component kComponents[] = {
    {"MessageError", R"({"type":"object","required":["type","error","request_id"],
      "additionalProperties":false,"properties":{"type":{"const":"error"},
        "error":{"type":"object","required":["type","message"],"additionalProperties":false,
          "properties":{"type":{"enum":["invalid_request_error","authentication_error",
              "permission_error","not_found_error","request_too_large","rate_limit_error",
              "timeout_error","overloaded_error","api_error"]},"message":{"type":"string"}}},
        "request_id":{"type":"string"}}})"},
    {"TokenCount", R"({"type":"object","required":["input_tokens"],"additionalProperties":false,
      "properties":{"input_tokens":{"type":"integer","minimum":1},
        "warnings":{"$ref":"#/components/schemas/Warnings"}}})"},
    {"MessageUsage", R"({"type":"object","additionalProperties":false,
      "required":["input_tokens","cache_creation_input_tokens","cache_read_input_tokens",
        "output_tokens"],
      "properties":{"input_tokens":{"type":"integer","minimum":0},
        "cache_creation_input_tokens":{"const":0},
        "cache_read_input_tokens":{"type":"integer","minimum":0},
        "output_tokens":{"type":"integer","minimum":0}}})"},
    {"Message", R"({"type":"object","additionalProperties":false,
      "required":["id","type","role","model","content","stop_reason","stop_sequence","usage"],
      "properties":{"id":{"type":"string"},"type":{"const":"message"},
        "role":{"const":"assistant"},"model":{"type":"string"},
        "content":{"type":"array","items":{"$ref":"#/components/schemas/TextBlock"}},
        "stop_reason":{"enum":["end_turn","max_tokens","stop_sequence",null]},
        "stop_sequence":{"type":["string","null"]},
        "usage":{"$ref":"#/components/schemas/MessageUsage"},
        "warnings":{"$ref":"#/components/schemas/Warnings"}}})"},
    {"TextBlock", R"({"type":"object","required":["type","text"],"additionalProperties":false,
      "properties":{"type":{"const":"text"},"text":{"type":"string"}}})"},
    {"MessageEvent", R"({"anyOf":[{"$ref":"#/components/schemas/MessageError"},
      {"type":"object","required":["type","message"],"additionalProperties":false,
       "properties":{"type":{"const":"message_start"},
         "message":{"$ref":"#/components/schemas/Message"}}},
      {"type":"object","required":["type","index","content_block"],"additionalProperties":false,
       "properties":{"type":{"const":"content_block_start"},"index":{"const":0},
         "content_block":{"$ref":"#/components/schemas/TextBlock"}}},
      {"type":"object","required":["type"],"additionalProperties":false,
       "properties":{"type":{"enum":["ping","message_stop"]}}},
      {"type":"object","required":["type","index","delta"],"additionalProperties":false,
       "properties":{"type":{"const":"content_block_delta"},"index":{"const":0},
         "delta":{"type":"object","required":["type","text"],"additionalProperties":false,
           "properties":{"type":{"const":"text_delta"},"text":{"type":"string"}}}}},
      {"type":"object","required":["type","index"],"additionalProperties":false,
       "properties":{"type":{"const":"content_block_stop"},"index":{"const":0}}},
      {"type":"object","required":["type","delta","usage"],"additionalProperties":false,
       "properties":{"type":{"const":"message_delta"},
         "delta":{"type":"object","required":["stop_reason","stop_sequence"],
           "additionalProperties":false,
           "properties":{"stop_reason":{"enum":["end_turn","max_tokens","stop_sequence"]},
             "stop_sequence":{"type":["string","null"]}}},
         "usage":{"$ref":"#/components/schemas/MessageUsage"},
         "warnings":{"$ref":"#/components/schemas/Warnings"}}}]})"},
};

}  // namespace

std::span<const Component> MessagesComponents() {
  return kComponents;
}

}  // namespace tessera::server::openapi
