// SPDX-License-Identifier: Apache-2.0
//
// Words for JSON that does not parse: what stood there and what could have stood there instead.
// Only for messages; called once, after the parser gave up. Private to json.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::json {

/// Bytes of the text that a message shows.
inline constexpr size_t kMaxExcerptBytes = 16;

/// The innermost container that is open where parsing stopped.
enum class Open : unsigned char { kNothing, kObject, kArray };

/// "expected ',' or '}', got "x y"": why the text, valid up to `offset`, cannot go on as it does
/// (or ends there). Printable ASCII, at most a hundred bytes or so.
std::string DescribeSyntaxError(std::string_view text, size_t offset, Open open);

/// In double quotes, what is not printable ASCII as \xNN; "..." behind it when cut to `max_bytes`.
std::string Quote(std::string_view text, size_t max_bytes);

}  // namespace tessera::json
