// SPDX-License-Identifier: Apache-2.0
//
// ServedModel: what the HTTP side knows of the one model that this process serves. Filled once by
// whoever opened the model (cli/), immutable and shared by all threads from then on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "engine/sampling_defaults.h"
#include "server/dry_breakers.h"
#include "server/memory_use.h"
#include "text/chat_format.h"
#include "text/chat_template.h"
#include "text/grammar_cache.h"
#include "text/tokenizer.h"

namespace tessera::server {

class RequestTemplates;

struct ServedModel {
  std::string id;                    // What clients name in `model`.
  std::vector<std::string> aliases;  // Other names that mean the same.
  std::string owned_by = "tessera";
  int64_t created_unix_seconds = 0;
  std::string fingerprint;  // Of program, parameters and version: system_fingerprint.

  std::shared_ptr<const text::Tokenizer> tokenizer;
  /// A fresh detokenizer for one answer: text::Detokenizer::Make bound to `tokenizer`.
  std::function<std::unique_ptr<text::Detokenizer>(bool skip_special)> make_detokenizer;
  /// Null when the model has none: chat is then refused with a sentence that says so.
  std::shared_ptr<const text::ChatTemplate> chat_template;
  /// Of the template: syntax of calls, marks of thoughts.
  text::ChatFormat chat_format = text::DefaultChatFormat();
  /// Null: requests may bring no template of their own.
  std::shared_ptr<RequestTemplates> request_templates;
  bool separates_reasoning = false;  // Unless a request says otherwise.
  json::Object template_vars;        // bos_token, eos_token, ...: what the template may name.

  std::vector<text::TokenId> eos_ids;
  /// Forms of output that clients ask for. Never null.
  std::shared_ptr<text::GrammarCache> grammars;
  /// Of the model's generation_config; a request's own values go before them.
  engine::SamplingDefaults defaults;
  /// For the metrics page: whose the process's memory is, and what loading took.
  std::vector<OwnedMemory> memory;
  std::vector<std::pair<std::string, double>> load_seconds;
  /// Of `tokenizer`; shared by all copies.
  std::shared_ptr<DryBreakers> dry_breakers = std::make_shared<DryBreakers>();
};

/// Is `name` this model?
bool IsNameOf(const ServedModel& model, std::string_view name);

}  // namespace tessera::server
