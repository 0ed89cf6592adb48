// SPDX-License-Identifier: Apache-2.0
//
// The JSON-lines protocol of the verbs `tokenize` and `detokenize`: one JSON object in, one JSON
// object out. A line that cannot be answered gives {"error": "..."} and harms no other line.
// Lines come and go without their line break. Safe on any thread.
//
//   {"text": "a b"}      -> {"ids": [1, 264, 287]}
//   {"ids": [264, 287]}  -> {"text": "a b"}
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/tokenizer.h"

namespace tessera::text {

std::string TokenizeLine(const Tokenizer& tokenizer, std::string_view line,
                         const EncodeOptions& options);
std::string DetokenizeLine(const Tokenizer& tokenizer, std::string_view line, bool skip_special);
/// {"error": "..."} with the status as users read it: for verbs that share the protocol.
std::string ErrorLine(const Status& status);

}  // namespace tessera::text
