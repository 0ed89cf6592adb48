// SPDX-License-Identifier: Apache-2.0
//
// The text that certificates score: prose, dialogue, code, figures and a second language, written
// for this purpose; about 600 tokens of the usual vocabularies. It never changes, so that figures
// of two bundles can be compared.
#pragma once

#include <string_view>

namespace tessera::certify {

extern const std::string_view kText;

}  // namespace tessera::certify
