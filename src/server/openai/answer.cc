// SPDX-License-Identifier: Apache-2.0
#include "server/openai/answer.h"

#include <fmt/format.h>

#include <chrono>

#include "base/random.h"
#include "server/warning_counters.h"

namespace tessera::server::openai {

json::Object UsageBody(const Usage& usage) {
  using Reason = engine::CacheMiss::Reason;
  json::Object details{{"cached_tokens", usage.cached_tokens}};
  if (usage.cache_miss.reason != Reason::kNone) {
    json::Object miss{{"reason", engine::CacheMissName(usage.cache_miss.reason)}};
    if (usage.cache_miss.reason != Reason::kOff) miss["position"] = usage.cache_miss.position;
    details["cache_miss"] = std::move(miss);
  }
  json::Object body{{"prompt_tokens", usage.prompt_tokens},
                    {"completion_tokens", usage.completion_tokens},
                    {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
                    {"prompt_tokens_details", std::move(details)}};
  if (usage.reasoning_tokens >= 0)
    body["completion_tokens_details"] = {{"reasoning_tokens", usage.reasoning_tokens}};
  return body;
}

std::string MakeId(std::string_view prefix) {
  return fmt::format("{}{:016x}{:016x}", prefix, SystemRandom64(), SystemRandom64());
}

std::string_view FinishWord(engine::FinishReason reason) {
  return reason == engine::FinishReason::kLength ? "length" : "stop";
}

json::Object Answer::Body(std::string_view object) const {
  return {{"id", head_.id},
          {"object", object},
          {"created", head_.created},
          {"model", head_.model},
          {"system_fingerprint", head_.fingerprint}};
}

json::Object Answer::ChunkBody(json::Object choice) const {
  json::Object body = Body(chunk_object());
  body["choices"] = json::Array{std::move(choice)};
  // Clients that asked for usage find the key in every chunk, null until the last.
  if (head_.include_usage) body["usage"] = nullptr;
  return body;
}

json::Object Answer::ProgressChunk(size_t choice, const engine::PrefillProgress& progress) const {
  json::Object body = Body(chunk_object());
  body["choices"] = json::Array();
  if (head_.include_usage) body["usage"] = nullptr;
  body["prompt_progress"] = {
      {"index", choice},
      {"total", progress.total},
      {"cache", progress.cached},
      {"processed", progress.processed},
      {"time_ms", std::chrono::duration_cast<std::chrono::milliseconds>(progress.elapsed).count()}};
  return body;
}

json::Object Answer::UsageChunk(Usage usage) const {
  usage.reasoning_tokens = reasoning_tokens();
  json::Object body = Body(chunk_object());
  body["choices"] = json::Array();
  body["usage"] = UsageBody(usage);
  return body;
}

void Answer::Warn(Warning warning) {
  if (head_.counters != nullptr) head_.counters->Add(std::span(&warning, 1));
  head_.warnings.push_back(std::move(warning));
}

void Answer::AddWarnings(json::Object* body) const {
  if (!head_.warnings.empty()) (*body)["warnings"] = WarningsBody(head_.warnings);
}

}  // namespace tessera::server::openai
