// SPDX-License-Identifier: Apache-2.0
#include "gateway/openapi/components.h"

namespace tessera::gateway::openapi {
namespace {

constexpr Component kComponents[] = {
    {"Error", R"({"type":"object","required":["detail"],"properties":{
      "detail":{"anyOf":[{"type":"string"},
        {"type":"array","items":{"$ref":"#/components/schemas/FieldError"}}]},
      "error":{"type":"object","description":"Of the OpenAI routes alone.",
        "required":["message","type","param","code"],"properties":{"message":{"type":"string"},
          "type":{"type":"string"},"param":{"type":["string","null"]},
          "code":{"type":["string","null"]}}}}})"},
    {"FieldError", R"({"type":"object","required":["type","loc","msg","input"],"properties":{
      "type":{"type":"string"},"loc":{"type":"array","items":{"type":"string"}},
      "msg":{"type":"string"},"input":{}}})"},
    {"Health", R"({"type":"object","required":["status"],
      "properties":{"status":{"const":"ok"}}})"},
    {"Accepted", R"({"type":"object","required":["endpoint_creation_task_id"],
      "properties":{"endpoint_creation_task_id":{"type":"string"}}})"},
    {"Deleted", R"({"type":"object","required":["deleted"],
      "properties":{"deleted":{"const":true}}})"},
    {"Restarted", R"({"type":"object","required":["restarted"],
      "properties":{"restarted":{"const":true}}})"},
    {"EndpointList", R"({"type":"object","required":["model_endpoints","has_more"],"properties":{
      "model_endpoints":{"type":"array","items":{"$ref":"#/components/schemas/Endpoint"}},
      "has_more":{"type":"boolean"}}})"},
    {"Endpoint", R"({"type":"object",
      "required":["id","name","model_name","source","status","status_reason","ready","warnings",
        "inference_framework","num_shards","spec"],
      "properties":{"id":{"type":"string"},"name":{"type":"string"},
        "model_name":{"type":"string"},"source":{"const":"hugging_face"},
        "status":{"$ref":"#/components/schemas/Status"},
        "status_reason":{"type":"string","minLength":1,"description":"Why it is so, always."},
        "ready":{"type":"boolean","description":"Whether a call now would be answered."},
        "warnings":{"type":"array","items":{"type":"string"},
          "description":"What is done differently than asked."},
        "inference_framework":{"enum":["vllm","deepspeed","text_generation_inference","lightllm",
          "tensorrt_llm"]},
        "inference_framework_image_tag":{"type":"string"},
        "inference_framework_tag":{"type":"string"},
        "num_shards":{"type":"integer","minimum":1},
        "quantize":{"type":["string","null"]},"checkpoint_path":{"type":["string","null"]},
        "chat_template_override":{"type":["string","null"]},
        "task_expires_seconds":{"type":["integer","null"]},
        "queue_message_timeout_seconds":{"type":["integer","null"]},
        "engine_options":{"type":"object","description":"Options by vLLM's names, as asked."},
        "spec":{"$ref":"#/components/schemas/EndpointSpec"}}})"},
    {"Status", R"({"enum":["READY","UPDATE_PENDING","UPDATE_IN_PROGRESS","UPDATE_FAILED",
      "DELETE_IN_PROGRESS"]})"},
    {"EndpointSpec", R"({"type":"object",
      "required":["id","name","endpoint_type","destination","bundle_name","status","created_by",
        "created_at","last_updated_at"],
      "properties":{"id":{"type":"string"},"name":{"type":"string"},
        "endpoint_type":{"const":"streaming"},"destination":{"type":"string"},
        "deployment_name":{"type":"string"},"metadata":{"type":"object"},
        "bundle_name":{"type":"string"},"status":{"$ref":"#/components/schemas/Status"},
        "status_reason":{"type":"string"},
        "post_inference_hooks":{"type":"array","items":{"type":"string"}},
        "default_callback_url":{"type":["string","null"]},
        "default_callback_auth":{"type":["object","null"],
          "description":"For the owner alone, secrets as ***."},
        "labels":{"type":"object"},"aws_role":{"type":"null"},
        "results_s3_bucket":{"type":"null"},"created_by":{"type":"string"},
        "created_at":{"type":"string","format":"date-time"},
        "last_updated_at":{"type":"string","format":"date-time"},
        "deployment_state":{"$ref":"#/components/schemas/DeploymentState"},
        "resource_state":{"anyOf":[{"type":"null"},
          {"$ref":"#/components/schemas/ResourceState"}]},
        "num_queued_items":{"type":"integer","minimum":0,
          "description":"Calls that wait for a worker."},
        "public_inference":{"type":"boolean"},
        "task_expires_seconds":{"type":["integer","null"]},
        "queue_message_timeout_seconds":{"type":["integer","null"]}}})"},
    {"DeploymentState", R"({"type":"object","required":["min_workers","max_workers","per_worker"],
      "properties":{"min_workers":{"type":"integer","minimum":0},
        "max_workers":{"type":"integer","minimum":0},"per_worker":{"type":"integer","minimum":1},
        "concurrent_requests_per_worker":{"type":"integer","minimum":1},
        "available_workers":{"type":"integer","minimum":0,"description":"That serve."},
        "unavailable_workers":{"type":"integer","minimum":0,"description":"That start."}}})"},
    {"ResourceState", R"({"type":"object","required":["cpus","gpus","memory","nodes_per_worker"],
      "properties":{"cpus":{"type":"string"},"gpus":{"type":"integer","minimum":0},
        "memory":{"type":"string"},"gpu_type":{"type":["string","null"]},
        "storage":{"type":["string","null"]},"nodes_per_worker":{"type":"integer","minimum":1},
        "optimize_costs":{"type":["boolean","null"]}}})"},
    {"WorkerList", R"({"type":"object","required":["workers"],"properties":{
      "workers":{"type":"array","items":{"$ref":"#/components/schemas/Worker"}}}})"},
    {"Worker", R"({"type":"object","required":["id","state","since"],"properties":{
      "id":{"type":"string"},
      "pid":{"type":["integer","null"],"description":"Of a process of this machine."},
      "pod":{"type":["string","null"],"description":"In a cluster."},
      "state":{"enum":["starting","ready","draining","stopping","exited"]},
      "since":{"type":"string","format":"date-time"},
      "version":{"type":"integer","description":"Grows with changes that need new workers."},
      "running":{"type":"integer","minimum":0,"description":"Open calls."}}})"},
    {"EventList", R"({"type":"object","required":["events"],"properties":{
      "events":{"type":"array","items":{"$ref":"#/components/schemas/Event"}}}})"},
    {"Event", R"({"type":"object","required":["id","at","kind","text","actor"],"properties":{
      "id":{"type":"integer","description":"Grows."},
      "at":{"type":"string","format":"date-time"},"kind":{"type":"string"},
      "text":{"type":"string"},
      "actor":{"type":["string","null"],"description":"The user; null: the gateway itself."}}})"},
    {"LogList", R"({"type":"object","required":["logs"],"properties":{"logs":{"type":"array",
      "items":{"type":"object","required":["worker","text"],"properties":{
        "worker":{"type":"string"},"text":{"type":"string"}}}}}})"},
    {"Completion", R"({"anyOf":[
      {"type":"object","required":["request_id","output"],"properties":{
        "request_id":{"type":"string"},"output":{"$ref":"#/components/schemas/Output"}}},
      {"type":"object","description":"Of a body with `prompts`.",
        "required":["status","outputs","traceback"],"properties":{
        "status":{"const":"SUCCESS"},"traceback":{"type":"null"},
        "outputs":{"type":"array","items":{"$ref":"#/components/schemas/Output"}}}}]})"},
    {"Output", R"({"type":"object","required":["text","num_completion_tokens"],"properties":{
      "text":{"type":"string"},"num_prompt_tokens":{"type":["integer","null"]},
      "num_completion_tokens":{"type":"integer","minimum":0},
      "tokens":{"anyOf":[{"type":"null"},
        {"type":"array","items":{"$ref":"#/components/schemas/Token"}}]}}})"},
    {"Token", R"({"type":"object","required":["token","log_prob"],"properties":{
      "token":{"type":"string"},"log_prob":{"type":["number","null"]}}})"},
    {"CompletionChunk", R"({"type":"object","required":["request_id","output","error"],
      "properties":{"request_id":{"type":"string"},
        "output":{"type":["object","null"],
          "required":["text","finished","num_prompt_tokens","num_completion_tokens","token"],
          "properties":{"text":{"type":"string"},"finished":{"type":"boolean"},
            "num_prompt_tokens":{"type":["integer","null"]},
            "num_completion_tokens":{"type":"integer","minimum":0},
            "token":{"anyOf":[{"type":"null"},{"$ref":"#/components/schemas/Token"}]}}},
        "error":{"type":["object","null"],"required":["status_code","content"],"properties":{
          "status_code":{"type":"integer"},"content":{"type":"object",
            "required":["error","timestamp"],"properties":{"error":{"type":"string"},
              "timestamp":{"type":"string"}}}}}}})"},
    {"ModelList", R"({"type":"object","required":["object","data"],"properties":{
      "object":{"const":"list"},"data":{"type":"array","items":{"type":"object",
        "required":["id","object","created","owned_by"],"properties":{"id":{"type":"string"},
          "object":{"const":"model"},"created":{"type":"integer"},"owned_by":{"type":"string"},
          "root":{"type":"string"},"ready":{"type":"boolean"}}}}}})"},
    {"File", R"({"type":"object","required":["id","filename","size"],"properties":{
      "id":{"type":"string"},"object":{"const":"file"},"filename":{"type":"string"},
      "size":{"type":"integer","minimum":0},"bytes":{"type":"integer","minimum":0},
      "created_at":{"type":"integer"},"purpose":{"type":"string"},"sha256":{"type":"string"},
      "status":{"const":"processed"}}})"},
    {"FileList", R"({"type":"object","required":["files","data","has_more"],"properties":{
      "object":{"const":"list"},"has_more":{"type":"boolean"},
      "first_id":{"type":["string","null"]},"last_id":{"type":["string","null"]},
      "files":{"type":"array","items":{"$ref":"#/components/schemas/File"}},
      "data":{"type":"array","items":{"$ref":"#/components/schemas/File"}}}})"},
    {"FileDeleted", R"({"type":"object","required":["deleted","id"],"properties":{
      "deleted":{"const":true},"id":{"type":"string"},"object":{"const":"file"}}})"},
    {"FileContent", R"({"type":"object","required":["id","content"],"properties":{
      "id":{"type":"string"},"content":{"type":"string"}}})"},
    {"BatchJob", R"({"type":"object",
      "required":["job_id","output_data_path","model_config","status","created_at","expires_at"],
      "properties":{"job_id":{"type":"string"},"status":{"type":"string"},
        "status_reason":{"type":"string"}}})"},
    {"Batch", R"({"type":"object","required":["id","object","status","created_at"],
      "properties":{"id":{"type":"string"},"object":{"const":"batch"},
        "status":{"type":"string"},"created_at":{"type":"integer"}}})"},
    {"FineTuneList", R"({"type":"object","required":["jobs"],
      "properties":{"jobs":{"type":"array","maxItems":0}}})"},
};

constexpr Parameter kParameters[] = {
    {"name", "name", R"({"type":"string"})", "Only the endpoint of this name."},
    {"order_by", "order_by", R"({"enum":["newest","oldest","alphabetical"]})",
     "Which come first (default: oldest)."},
    {"limit", "limit", R"({"type":"integer","minimum":1,"maximum":10000})",
     "At most so many (default: all endpoints; 100 events)."},
    {"after", "after", R"({"type":"string"})", "Those behind the endpoint of this name."},
    {"after_event", "after", R"({"type":"integer","minimum":0})",
     "Those behind the event of this id."},
    {"after_file", "after", R"({"type":"string"})", "Those behind the file of this id."},
    {"purpose", "purpose", R"({"type":"string"})", "Only files of this purpose."},
    {"order", "order", R"({"enum":["asc","desc"]})", "By age: desc, the newest first (default)."},
    {"raw", "raw", R"({"type":"string"})", "Whatever it is: the bytes instead of JSON."},
    {"model_endpoint_name", "model_endpoint_name", R"({"type":"string"})", "The endpoint's name."},
};

}  // namespace

std::span<const Component> Components() {
  return kComponents;
}

std::span<const Parameter> Parameters() {
  return kParameters;
}

}  // namespace tessera::gateway::openapi
