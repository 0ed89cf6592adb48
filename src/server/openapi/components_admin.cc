// SPDX-License-Identifier: Apache-2.0
#include "server/openapi/components.h"

namespace tessera::server::openapi {
namespace {

constexpr Component kComponents[] = {
    {"Stats", R"({"type":"object","additionalProperties":false,
      "required":["object","model","version","uptime_seconds","engine","kv","http","keys"],
      "properties":{"object":{"const":"stats"},"model":{"type":"string"},
        "version":{"type":"string"},"uptime_seconds":{"type":"number","minimum":0},
        "engine":{"type":"object","additionalProperties":false,
          "required":["running","waiting","draining","stage","steps","prompt_tokens",
            "generation_tokens","admissions_per_second","rejected_queue_full","preemptions",
            "finished"],
          "properties":{"running":{"type":"integer"},"waiting":{"type":"integer"},
            "draining":{"type":"boolean"},"stage":{"type":"string"},"steps":{"type":"integer"},
            "prompt_tokens":{"type":"integer"},"generation_tokens":{"type":"integer"},
            "admissions_per_second":{"type":"number"},"rejected_queue_full":{"type":"integer"},
            "preemptions":{"type":"integer"},
            "finished":{"type":"object","additionalProperties":{"type":"integer"}}}},
        "kv":{"type":"object","additionalProperties":{"type":"integer","minimum":0}},
        "http":{"type":"object","additionalProperties":{"type":"integer","minimum":0}},
        "keys":{"type":"array","items":{"$ref":"#/components/schemas/KeyStats"}}}})"},
    {"KeyStats", R"({"type":"object","additionalProperties":false,
      "required":["name","scopes","priority","rpm","tpm","concurrency","expires","requests",
        "refused","open","prompt_tokens","completion_tokens"],
      "properties":{"name":{"type":"string"},
        "scopes":{"type":"array","items":{"enum":["inference","metrics","admin"]}},
        "priority":{"type":["integer","null"]},"rpm":{"type":["integer","null"]},
        "tpm":{"type":["integer","null"]},"concurrency":{"type":["integer","null"]},
        "expires":{"type":["string","null"]},"requests":{"type":"integer"},
        "refused":{"type":"integer"},"open":{"type":"integer"},
        "prompt_tokens":{"type":"integer"},"completion_tokens":{"type":"integer"}}})"},
    {"Drained", R"({"type":"object","additionalProperties":false,
      "required":["object","finished","sequences","seconds","message"],
      "properties":{"object":{"const":"drain"},"finished":{"type":"boolean"},
        "sequences":{"type":"integer","minimum":0},"seconds":{"type":"number","minimum":0},
        "message":{"type":"string"}}})"},
    {"Reloaded", R"({"type":"object","additionalProperties":false,
      "required":["object","keys","key_file","certificate"],
      "properties":{"object":{"const":"reload"},"keys":{"type":"integer","minimum":0},
        "key_file":{"type":"boolean"},"certificate":{"type":"boolean"}}})"},
};

}  // namespace

std::span<const Component> AdminComponents() {
  return kComponents;
}

}  // namespace tessera::server::openapi
