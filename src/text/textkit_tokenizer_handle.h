// SPDX-License-Identifier: Apache-2.0
//
// How the other adapters of text/ reach the textkit handle behind a Tokenizer. Not for use outside
// of text/.
#pragma once

#include "textkit_tokenizer.h"

namespace tessera::text {

class TextkitTokenizerHandle {
 public:
  virtual ~TextkitTokenizerHandle() = default;
  /// Lives as long as this object.
  virtual const tk_tokenizer* handle() const = 0;
};

}  // namespace tessera::text
