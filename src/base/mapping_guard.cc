// SPDX-License-Identifier: Apache-2.0
#include "base/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

namespace tessera {
namespace {

/// begin = 0: free, 1: being written.
struct Slot {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> damaged{false};
};
std::array<Slot, kMaxGuardedMappings> g_slots;
uintptr_t g_page = 4096;
struct sigaction g_previous;

Slot* Find(uintptr_t address) {
  for (Slot& slot : g_slots) {
    const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin > 1 && begin <= address && address < slot.end.load(std::memory_order_relaxed))
      return &slot;
  }
  return nullptr;
}

/// Only what signal-safety(7) and the kernel's own mmap allow.
void OnBusError(int, siginfo_t* info, void*) {
  const int saved = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Slot* slot = info->si_code > 0 ? Find(address) : nullptr;  // <= 0: sent by a process.
  if (slot != nullptr) {
    void* page = reinterpret_cast<void*>(address / g_page * g_page);
    if (::mmap(page, g_page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) {
      slot->damaged.store(true, std::memory_order_release);
      errno = saved;
      return;  // The read is tried again and finds zeros.
    }
  }
  ::sigaction(SIGBUS, &g_previous, nullptr);
  ::raise(SIGBUS);  // Not ours: delivered as before when this returns.
}

}  // namespace

void InstallMappingGuard() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigaction(SIGBUS, &action, &g_previous);
  });
}

GuardedMapping::GuardedMapping(const void* begin, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  for (int i = 0; i < kMaxGuardedMappings; ++i) {
    Slot& slot = g_slots[static_cast<size_t>(i)];
    uintptr_t expected = 0;
    if (!slot.begin.compare_exchange_strong(expected, 1)) continue;
    slot.damaged.store(false, std::memory_order_relaxed);
    slot.end.store(address + bytes, std::memory_order_relaxed);
    slot.begin.store(address, std::memory_order_release);
    slot_ = i;
    return;
  }
}

GuardedMapping::~GuardedMapping() {
  if (slot_ >= 0) g_slots[static_cast<size_t>(slot_)].begin.store(0, std::memory_order_release);
}

bool GuardedMapping::damaged() const {
  return slot_ >= 0 && g_slots[static_cast<size_t>(slot_)].damaged.load(std::memory_order_acquire);
}

}  // namespace tessera
