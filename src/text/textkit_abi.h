// SPDX-License-Identifier: Apache-2.0
//
// The C++ end of textkit's C ABI: slices from strings, strings from owned buffers, Status from
// codes. Only the adapters of text/ (tokenizer, chat_template, constraint) include it.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include "base/status.h"
#include "textkit.h"

namespace tessera::text {

/// Borrows `text` for one call.
inline tk_slice ToSlice(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// An out-buffer that frees itself: pass `out()` to a call, then read `view()` or copy `str()`.
class TextkitBuffer {
 public:
  TextkitBuffer() = default;
  ~TextkitBuffer() { tk_buffer_free(&buffer_); }
  TextkitBuffer(const TextkitBuffer&) = delete;
  TextkitBuffer& operator=(const TextkitBuffer&) = delete;

  /// Frees what the buffer holds and gives its address to be written.
  tk_buffer* out() {
    tk_buffer_free(&buffer_);
    return &buffer_;
  }
  /// Valid until the next out() or the destructor.
  std::string_view view() const {
    return {reinterpret_cast<const char*>(buffer_.data), buffer_.len};
  }
  std::string str() const { return std::string(view()); }
  const uint8_t* data() const { return buffer_.data; }
  size_t size() const { return buffer_.len; }

 private:
  tk_buffer buffer_{};
};

/// The Status of a call that returned `code` and wrote `error`. Success for TK_OK.
Status FromTextkit(tk_code code, const TextkitBuffer& error,
                   std::source_location where = std::source_location::current());

}  // namespace tessera::text
