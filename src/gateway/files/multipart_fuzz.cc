// SPDX-License-Identifier: Apache-2.0
//
// Any body of an upload: the parts are the same whole and cut in pieces of any size (the first byte
// says how large), or both are refused alike; a part is never told of after an error; names are
// UTF-8.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "gateway/files/multipart.h"
#include "gateway/limits.h"

namespace {

using tessera::Status;
using tessera::gateway::MultipartReader;
using tessera::gateway::PartHead;

/// Everything it is told, as one text. Bytes count, not how they were cut.
class Log final : public tessera::gateway::MultipartSink {
 public:
  Status OnPart(const PartHead& head) override {
    TESSERA_CHECK(!is_open_ && ++parts_ <= tessera::gateway::kMultipartPartsMax);
    TESSERA_CHECK(tessera::IsUtf8(head.name) && tessera::IsUtf8(head.filename));
    is_open_ = true;
    text += "<" + head.name + "|" + head.filename + "|" + head.content_type + ">";
    return {};
  }
  Status OnPartBytes(std::string_view bytes) override {
    TESSERA_CHECK(is_open_ && !bytes.empty());
    text += bytes;
    return {};
  }
  Status OnPartEnd() override {
    TESSERA_CHECK(is_open_);
    is_open_ = false;
    text += "</>";
    return {};
  }
  std::string text;

 private:
  bool is_open_ = false;
  size_t parts_ = 0;
};

Status Read(std::string_view form, size_t grain, Log* log) {
  MultipartReader reader("b", log);
  while (!form.empty()) {
    TESSERA_RETURN_IF_ERROR(reader.Feed(form.substr(0, grain)));
    form.remove_prefix(std::min(grain, form.size()));
  }
  return reader.Finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto boundary = tessera::gateway::MultipartBoundary(input); boundary.has_value())
    TESSERA_CHECK(!boundary->empty() && boundary->size() <= 70);
  Log whole, pieces;
  const Status a = Read(input, SIZE_MAX, &whole);
  const Status b = Read(input, size_t{data[0]} + 1, &pieces);
  TESSERA_CHECK(a.code() == b.code());
  if (a.ok()) TESSERA_CHECK(whole.text == pieces.text);
  return 0;
}
