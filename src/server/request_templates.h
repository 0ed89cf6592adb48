// SPDX-License-Identifier: Apache-2.0
//
// RequestTemplates: chat templates that requests bring, where the operator lets them. What a
// template writes and how calls and thoughts look in it is learnt as for the model's own; the last
// few are kept by their text. Thread-safe.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/chat_format.h"
#include "text/chat_template.h"

namespace tessera::server {

class RequestTemplates {
 public:
  struct Learnt {
    std::shared_ptr<const text::ChatTemplate> chat_template;
    text::ChatFormat format;
  };

  /// `vars` and `end_texts` as text::LearnChatFormat takes them.
  RequestTemplates(json::Object vars, std::vector<std::string> end_texts,
                   text::ChatFormatOptions options)
      : vars_(std::move(vars)), end_texts_(std::move(end_texts)), options_(std::move(options)) {}

  /// kInvalidArgument when it does not parse.
  Result<Learnt> Get(std::string_view source);

 private:
  const json::Object vars_;
  const std::vector<std::string> end_texts_;
  const text::ChatFormatOptions options_;

  std::mutex mutex_;
  std::list<Learnt> kept_;  // Used last first; at most kRequestTemplatesMax.
};

}  // namespace tessera::server
