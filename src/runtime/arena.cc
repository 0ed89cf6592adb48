// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace tessera::runtime {

Result<Mapping> Mapping::Reserve(uint64_t bytes, bool huge) {
  Mapping mapping;
  if (bytes == 0) return mapping;
  // NORESERVE: a pool for the longest context may exceed what is free; only used pages count.
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return Fail(ResourceExhausted(
        fmt::format("reserving {} bytes of memory: {}", bytes, std::strerror(errno))));
  // A hint: without huge pages everything works, a little slower.
  if (huge) (void)::madvise(address, bytes, MADV_HUGEPAGE);
  mapping.data_ = static_cast<std::byte*>(address);
  mapping.bytes_ = bytes;
  return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Arena::Slot Arena::Add(uint64_t bytes) {
  TESSERA_CHECK(mapping_.data() == nullptr);
  constexpr uint64_t kCacheLine = 64;
  const Slot slot = planned_;
  uint64_t end = 0;
  TESSERA_CHECK(!AddOverflows(slot, bytes, &end) && AlignUp(end, kCacheLine, &planned_));
  return slot;
}

Status Arena::Commit() {
  TESSERA_ASSIGN_OR_RETURN(mapping_, Mapping::Reserve(planned_, false));
  return {};
}

}  // namespace tessera::runtime
