// SPDX-License-Identifier: Apache-2.0
//
// DryBreakers: strings that no repetition reaches across -> the tokens that contain one of them
// (engine::DryParams). Looking through a vocabulary takes milliseconds, so the last sets are kept.
// Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace tessera::server {

/// What the reference implementations take when a request names none.
std::span<const std::string> DefaultDryBreakers();

class DryBreakers {
 public:
  /// [vocab]. kInvalidArgument for a string that no single token contains: it would have no effect.
  /// Always called with the same tokenizer.
  Result<std::shared_ptr<const std::vector<bool>>> Find(const text::Tokenizer& tokenizer,
                                                        std::vector<std::string> strings);

 private:
  using Table = std::shared_ptr<const std::vector<bool>>;
  std::mutex mutex_;
  std::vector<std::pair<std::vector<std::string>, Table>> recent_;  // Under mutex_; latest last.
};

}  // namespace tessera::server
