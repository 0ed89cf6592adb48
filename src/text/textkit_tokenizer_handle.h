// SPDX-License-Identifier: Apache-2.0
//
// How the other adapters of text/ reach the textkit handle behind a Tokenizer. Not for use outside
// of text/.
#pragma once

#include <memory>

#include "text/tokenizer.h"
#include "textkit_tokenizer.h"

namespace tessera::text {

/// A Tokenizer that owns `handle`, which is not null.
std::shared_ptr<const Tokenizer> AdoptTokenizer(tk_tokenizer* handle);

class TextkitTokenizerHandle {
 public:
  virtual ~TextkitTokenizerHandle() = default;
  /// Lives as long as this object.
  virtual const tk_tokenizer* handle() const = 0;
};

}  // namespace tessera::text
