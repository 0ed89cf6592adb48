// SPDX-License-Identifier: Apache-2.0
//
// KvMemory: the pages of KV memory, one reservation. Which page belongs to whom is the
// engine's business. A page that was never written costs no memory.
#pragma once

#include <cstdint>

#include "bundle/program.h"
#include "kernels/attention.h"
#include "runtime/arena.h"
#include "runtime/session.h"

namespace tessera::runtime {

class KvMemory {
 public:
  static Result<KvMemory> Make(const bundle::Dims& dims, int64_t pages,
                               kernels::KvType type = kernels::KvType::kF16);

  int64_t pages() const { return pages_; }
  std::byte* data() const { return memory_.data(); }
  uint64_t bytes() const { return memory_.bytes(); }
  const kernels::KvLayout& layout() const { return layout_; }
  /// The same memory seen as one KV head a layer, so that a kernel call may serve any part of
  /// one head's group: plane (layer, head) is layer `layer * kv_heads + head` of it.
  kernels::KvLayout PlaneLayout() const {
    kernels::KvLayout planes = layout_;
    planes.layers = layout_.layers * layout_.kv_heads;
    planes.kv_heads = 1;
    return planes;
  }
  int64_t Plane(int64_t layer, int64_t kv_head) const { return layer * layout_.kv_heads + kv_head; }
  /// Has the system find memory for a page. No effect where the kernel cannot (before Linux 5.14).
  void Back(PageId page) const;
  /// Both pages must exist.
  void Copy(PageId from, PageId to);

 private:
  KvMemory(const kernels::KvLayout& layout, int64_t pages, Mapping memory)
      : layout_(layout), pages_(pages), memory_(std::move(memory)) {}
  kernels::KvLayout layout_;
  int64_t pages_;
  Mapping memory_;
};

}  // namespace tessera::runtime
