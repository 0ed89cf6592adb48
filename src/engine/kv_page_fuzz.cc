// SPDX-License-Identifier: Apache-2.0
//
// Any file is refused with a message of one printable line, or is, byte for byte, what encoding its
// payload gives. A sound page with one changed bit is refused.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/kv_page.h"

namespace tessera::engine {
namespace {

/// The name under which the seeds were written.
KvPageName NameFor(size_t payload_bytes) {
  const std::vector<TokenId> tokens = {1, 2, 3};
  const PageHash root = RootHash("fuzz");
  return {root, HashOfPage(root, tokens), payload_bytes};
}

void CheckMessage(const Status& status) {
  const std::string text = status.ToString();
  TESSERA_CHECK(text.size() < 512);
  for (const char c : text) TESSERA_CHECK(c >= 0x20 && c < 0x7f);
}

void CheckFile(ByteSpan file) {
  if (file.size() < kKvPageHeaderBytes) return;  // Its reader looks at the size first.
  KvPageHeader header;
  std::memcpy(header.data(), file.data(), header.size());
  const ByteSpan payload = file.subspan(kKvPageHeaderBytes);
  const KvPageName name = NameFor(payload.size());
  const Status status = CheckKvPage(header, payload, name);
  if (!status.ok()) return CheckMessage(status);
  TESSERA_CHECK(EncodeKvPageHeader(name, payload) == header);
}

void CheckOneBit(ByteSpan payload, size_t bit) {
  const KvPageName name = NameFor(payload.size());
  KvPageHeader header = EncodeKvPageHeader(name, payload);
  TESSERA_CHECK(CheckKvPage(header, payload, name).ok());
  std::vector<std::byte> changed(payload.begin(), payload.end());
  bit %= 8 * (header.size() + changed.size());
  std::byte* const byte =
      bit / 8 < header.size() ? &header[bit / 8] : &changed[bit / 8 - header.size()];
  *byte ^= static_cast<std::byte>(1u << (bit % 8));
  TESSERA_CHECK(!CheckKvPage(header, changed, name).ok());
}

}  // namespace
}  // namespace tessera::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tessera::ByteSpan bytes = std::as_bytes(std::span(data, size));
  tessera::engine::CheckFile(bytes);
  if (size < 4) return 0;
  uint32_t bit = 0;
  std::memcpy(&bit, data, sizeof bit);
  tessera::engine::CheckOneBit(bytes.subspan(sizeof bit), bit);
  return 0;
}
