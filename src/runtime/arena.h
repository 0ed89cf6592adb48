// SPDX-License-Identifier: Apache-2.0
//
// Arena: anonymous memory reserved once and used for the life of a session. Nothing is touched
// here: a page of it costs memory when it is first written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace tessera::runtime {

/// Owns one mapping. Movable.
class Mapping {
 public:
  Mapping() = default;
  /// Zero-filled and page-aligned; huge pages are asked for when `huge`. kResourceExhausted when
  /// the system refuses.
  static Result<Mapping> Reserve(uint64_t bytes, bool huge);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// First all Add() calls, then Commit(), then At(): a plan before the payment.
class Arena {
 public:
  using Slot = uint64_t;
  /// Room for `bytes`, aligned to a cache line. Sizes must not overflow: callers' limits see to it.
  Slot Add(uint64_t bytes);
  Status Commit();
  std::byte* At(Slot slot) const { return mapping_.data() + slot; }
  template <class T>
  T* As(Slot slot) const {
    return reinterpret_cast<T*>(At(slot));
  }
  uint64_t bytes() const { return planned_; }
  std::span<const std::byte> memory() const { return {mapping_.data(), mapping_.bytes()}; }

 private:
  uint64_t planned_ = 0;
  Mapping mapping_;
};

}  // namespace tessera::runtime
