// SPDX-License-Identifier: Apache-2.0
#include "runtime/kv_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "runtime/limits.h"

namespace tessera::runtime {

Result<KvMemory> KvMemory::Make(const bundle::Dims& dims, int64_t pages, kernels::KvType type) {
  if (pages < 1 || pages > kMaxPages)
    return Fail(InvalidArgument(fmt::format("{} KV pages, expected 1 to {}", pages, kMaxPages)));
  const kernels::KvLayout layout{dims.layers, dims.kv_heads, dims.head_dim, dims.page_tokens, type};
  uint64_t bytes = 0;
  if (MulOverflows(static_cast<uint64_t>(layout.PageBytes()), static_cast<uint64_t>(pages), &bytes))
    return Fail(
        ResourceExhausted(fmt::format("{} KV pages of {} bytes", pages, layout.PageBytes())));
  TESSERA_ASSIGN_OR_RETURN(Mapping memory, Mapping::Reserve(bytes, true));
  return KvMemory(layout, pages, std::move(memory));
}

void KvMemory::Back(PageId page) const {
  TESSERA_CHECK(page >= 0 && page < pages_);
#ifdef MADV_POPULATE_WRITE
  const auto unit = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t bytes = static_cast<uint64_t>(layout_.PageBytes());
  const uint64_t begin = static_cast<uint64_t>(page) * bytes / unit * unit;
  const uint64_t end = static_cast<uint64_t>(page + 1) * bytes;
  (void)::madvise(data() + begin, end - begin, MADV_POPULATE_WRITE);
#endif
}

void KvMemory::Copy(PageId from, PageId to) {
  TESSERA_CHECK(from >= 0 && from < pages_ && to >= 0 && to < pages_);
  if (from == to) return;
  const int64_t bytes = layout_.PageBytes();
  std::memcpy(data() + to * bytes, data() + from * bytes, static_cast<size_t>(bytes));
}

}  // namespace tessera::runtime
