// SPDX-License-Identifier: Apache-2.0
#include "server/openapi/components.h"
#include "server/responses/fields.h"

namespace tessera::server::openapi {
namespace {

constexpr Component kComponents[] = {
    {"Error", R"({"type":"object","required":["error"],"additionalProperties":false,
      "properties":{"error":{"type":"object","required":["message","type","param","code"],
        "additionalProperties":false,"properties":{"message":{"type":"string"},
          "type":{"type":"string"},"param":{"type":["string","null"]},
          "code":{"type":["string","null"]}}}}})"},
    {"Warnings", R"({"type":"array","minItems":1,"maxItems":17,"items":{"type":"object",
      "required":["code","param","message"],"additionalProperties":false,
      "properties":{"code":{"type":"string"},"param":{"type":["string","null"]},
        "message":{"type":"string"}}}})"},
    {"Version", R"({"type":"object","required":["version","model","system_fingerprint"],
      "additionalProperties":false,"properties":{"version":{"type":"string"},
        "model":{"type":"string"},"system_fingerprint":{"type":"string"}}})"},
    {"OpenApi", R"({"type":"object","required":["openapi","info","paths","components"]})"},
    {"ModelList", R"({"type":"object","required":["object","data"],"additionalProperties":false,
      "properties":{"object":{"const":"list"},
        "data":{"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/Model"}}}})"},
    {"Model", R"({"type":"object","additionalProperties":false,
      "required":["id","object","created","owned_by","max_model_len","context_length",
        "kv_cache_tokens","vocab_size","default_max_tokens","default_sampling_params",
        "capabilities"],
      "properties":{"id":{"type":"string"},"object":{"const":"model"},
        "created":{"type":"integer"},"owned_by":{"type":"string"},
        "max_model_len":{"type":"integer","minimum":1},
        "context_length":{"type":"integer","minimum":1},
        "kv_cache_tokens":{"type":"integer","minimum":1},
        "vocab_size":{"type":"integer","minimum":1},
        "default_max_tokens":{"type":"object",
          "additionalProperties":{"type":["integer","null"]}},
        "default_sampling_params":{"type":"object","additionalProperties":{"type":"number"}},
        "capabilities":{"type":"object","additionalProperties":{"type":"boolean"}}}})"},
    {"Tokens", R"({"type":"object","required":["count","max_model_len","tokens"],
      "additionalProperties":false,"properties":{"count":{"type":"integer","minimum":0},
        "max_model_len":{"type":"integer","minimum":1},
        "tokens":{"type":"array","items":{"type":"integer","minimum":0}},
        "warnings":{"$ref":"#/components/schemas/Warnings"}}})"},
    {"Prompt", R"({"type":"object","required":["prompt"],"additionalProperties":false,
      "properties":{"prompt":{"type":"string"},
        "warnings":{"$ref":"#/components/schemas/Warnings"}}})"},
    {"TokenizerInfo", R"({"type":"object","additionalProperties":false,
      "required":["bos_token","eos_token","pad_token","model_max_length","chat_template"],
      "properties":{"bos_token":{"type":["string","null"]},"eos_token":{"type":["string","null"]},
        "pad_token":{"type":["string","null"]},"model_max_length":{"type":"integer"},
        "chat_template":{"type":["string","null"]}}})"},
    {"CancelledRequest", R"({"type":"object","required":["id","object","cancelled","count"],
      "additionalProperties":false,"properties":{"id":{"type":"string"},
        "object":{"const":"request"},"cancelled":{"const":true},
        "count":{"type":"integer","minimum":1}}})"},
    {"GenerateError", R"({"type":"object","required":["error","code"],
      "additionalProperties":false,
      "properties":{"error":{"anyOf":[{"type":"string"},{"type":"object"}]},
        "code":{"type":"string"}}})"},
    {"Generated", R"({"anyOf":[
      {"type":"object","required":["responses"],"additionalProperties":false,
       "properties":{"responses":{"type":"array","items":{"type":"object",
           "required":["prompt","responses"],"additionalProperties":false,
           "properties":{"prompt":{"type":["string","null"]},
             "responses":{"type":"array","items":{"type":"object","required":["text"],
               "additionalProperties":false,"properties":{"text":{"type":"string"}}}}}}},
         "warnings":{"$ref":"#/components/schemas/Warnings"}}},
      {"type":"array","items":{"anyOf":[{"type":"integer"},
        {"type":"array","items":{"type":"integer"}}]}}]})"},
    {"GeneratedEvent", R"({"anyOf":[{"const":"[DONE]"},
      {"$ref":"#/components/schemas/GenerateError"},
      {"type":"object","required":["rid","index","text"],"additionalProperties":false,
       "properties":{"rid":{"type":"string"},"index":{"type":"integer","minimum":0},
         "text":{"type":"string"}}}]})"},
};

// Fields whose kind alone says too little, in every dialect that has them.
constexpr FieldDetail kDetails[] = {
    {"prompt", R"({"anyOf":[{"type":"string","minLength":1},
      {"type":"array","minItems":1,"items":{"type":"string","minLength":1}},
      {"type":"array","minItems":1,"items":{"type":"integer","minimum":0}},
      {"type":"array","minItems":1,
       "items":{"type":"array","minItems":1,"items":{"type":"integer","minimum":0}}}]})"},
    {"messages", R"({"type":"array","minItems":1,"items":{"type":"object",
      "required":["role","content"],"properties":{
        "role":{"enum":["system","developer","user","assistant","tool"]},
        "content":{"anyOf":[{"type":"string"},{"type":"array","minItems":1,
          "items":{"type":"object","required":["type","text"],
            "properties":{"type":{"const":"text"},"text":{"type":"string"}}}}]}}}})"},
    {"input", R"({"anyOf":[{"type":"string"},{"type":"array","minItems":1,
      "items":{"type":"object","required":["role","content"],"properties":{
        "type":{"const":"message"},"role":{"enum":["system","developer","user","assistant"]},
        "content":{"anyOf":[{"type":"string"},{"type":"array","minItems":1,
          "items":{"type":"object","required":["type","text"],
            "properties":{"type":{"enum":["input_text","output_text","text"]},
              "text":{"type":"string"}}}}]}}}}]})",
     responses::ResponseFields},
    {"input", R"({"anyOf":[{"type":"string","minLength":1},
      {"type":"array","minItems":1,"items":{"type":"string","minLength":1}},
      {"type":"array","minItems":1,"items":{"type":"integer","minimum":0}},
      {"type":"array","minItems":1,
       "items":{"type":"array","minItems":1,"items":{"type":"integer","minimum":0}}}]})",
     openai::RequestFields},
    {"system", R"({"anyOf":[{"type":"string"},{"type":"array","minItems":1,
      "items":{"type":"object","required":["type","text"],
        "properties":{"type":{"const":"text"},"text":{"type":"string"}}}}]})"},
    {"tokens", R"({"type":"array","items":{"type":"integer","minimum":0}})"},
    {"input_ids", R"({"type":"array","minItems":1,"items":{"anyOf":[{"type":"integer","minimum":0},
      {"type":"array","minItems":1,"items":{"type":"integer","minimum":0}}]}})"},
    {"stop", R"({"anyOf":[{"type":"null"},{"type":"string","minLength":1},
      {"type":"array","items":{"type":"string","minLength":1}}]})"},
    {"stop_sequences", R"({"type":["array","null"],"items":{"type":"string","minLength":1}})"},
    {"stop_token_ids", R"({"type":["array","null"],"items":{"type":"integer","minimum":0}})"},
    {"dry_sequence_breakers",
     R"({"type":["array","null"],"items":{"type":"string","minLength":1}})"},
    {"logit_bias", R"({"type":["object","null"],
      "propertyNames":{"pattern":"^[0-9]+$"},
      "additionalProperties":{"type":"number","minimum":-100,"maximum":100}})"},
    {"stream_options", R"({"type":["object","null"],
      "properties":{"include_usage":{"type":"boolean"},"include_progress":{"type":"boolean"},
        "resumable":{"type":"boolean"}}})"},
};

}  // namespace

std::span<const Component> CommonComponents() {
  return kComponents;
}

std::span<const FieldDetail> FieldDetails() {
  return kDetails;
}

}  // namespace tessera::server::openapi
