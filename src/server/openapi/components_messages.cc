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
        "content":{"type":"array","items":{"$ref":"#/components/schemas/ContentBlock"}},
        "stop_reason":{"enum":["end_turn","max_tokens","stop_sequence","tool_use",null]},
        "stop_sequence":{"type":["string","null"]},
        "usage":{"$ref":"#/components/schemas/MessageUsage"},
        "warnings":{"$ref":"#/components/schemas/Warnings"}}})"},
    {"ContentBlock", R"({"anyOf":[
      {"type":"object","required":["type","text"],"additionalProperties":false,
       "properties":{"type":{"const":"text"},"text":{"type":"string"}}},
      {"type":"object","required":["type","thinking","signature"],"additionalProperties":false,
       "properties":{"type":{"const":"thinking"},"thinking":{"type":"string"},
         "signature":{"const":""}}},
      {"type":"object","required":["type","id","name","input"],"additionalProperties":false,
       "properties":{"type":{"const":"tool_use"},"id":{"type":"string"},
         "name":{"type":"string"},"input":{"type":"object"}}}]})"},
    {"MessageEvent", R"({"anyOf":[{"$ref":"#/components/schemas/MessageError"},
      {"type":"object","required":["type","message"],"additionalProperties":false,
       "properties":{"type":{"const":"message_start"},
         "message":{"$ref":"#/components/schemas/Message"}}},
      {"type":"object","required":["type","index","content_block"],"additionalProperties":false,
       "properties":{"type":{"const":"content_block_start"},
         "index":{"type":"integer","minimum":0},
         "content_block":{"$ref":"#/components/schemas/ContentBlock"}}},
      {"type":"object","required":["type"],"additionalProperties":false,
       "properties":{"type":{"enum":["ping","message_stop"]}}},
      {"type":"object","required":["type","index","delta"],"additionalProperties":false,
       "properties":{"type":{"const":"content_block_delta"},
         "index":{"type":"integer","minimum":0},"delta":{"anyOf":[
           {"type":"object","required":["type","text"],"additionalProperties":false,
            "properties":{"type":{"const":"text_delta"},"text":{"type":"string"}}},
           {"type":"object","required":["type","thinking"],"additionalProperties":false,
            "properties":{"type":{"const":"thinking_delta"},"thinking":{"type":"string"}}},
           {"type":"object","required":["type","signature"],"additionalProperties":false,
            "properties":{"type":{"const":"signature_delta"},"signature":{"const":""}}},
           {"type":"object","required":["type","partial_json"],"additionalProperties":false,
            "properties":{"type":{"const":"input_json_delta"},
              "partial_json":{"type":"string"}}}]}}},
      {"type":"object","required":["type","index"],"additionalProperties":false,
       "properties":{"type":{"const":"content_block_stop"},
         "index":{"type":"integer","minimum":0}}},
      {"type":"object","required":["type","delta","usage"],"additionalProperties":false,
       "properties":{"type":{"const":"message_delta"},
         "delta":{"type":"object","required":["stop_reason","stop_sequence"],
           "additionalProperties":false,
           "properties":{"stop_reason":{"enum":["end_turn","max_tokens","stop_sequence","tool_use"]},
             "stop_sequence":{"type":["string","null"]}}},
         "usage":{"$ref":"#/components/schemas/MessageUsage"},
         "warnings":{"$ref":"#/components/schemas/Warnings"}}}]})"},
};

}  // namespace

std::span<const Component> MessagesComponents() {
  return kComponents;
}

}  // namespace tessera::server::openapi
