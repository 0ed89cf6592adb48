// SPDX-License-Identifier: Apache-2.0
#include "runtime/load_probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "runtime/nameless_file.h"

namespace tessera::runtime {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBytes = 64 << 20;
constexpr uint64_t kPage = 4096;
/// One direct request: as large as the system reads ahead for a mapping that is read in order.
constexpr uint64_t kRequest = 2 << 20;
constexpr int kRounds = 3;

Status WriteBytes(const fs::path& path) {
  TESSERA_ASSIGN_OR_RETURN(const auto writer, FileWriter::Create(path));
  const std::vector<std::byte> piece(1 << 20, std::byte{1});
  for (uint64_t at = 0; at < kBytes; at += piece.size())
    TESSERA_RETURN_IF_ERROR(writer->WriteAt(at, piece));
  return {};
}

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};

/// Whether the file has data, not a hole, at `offset`.
bool HasData(int fd, off_t offset) {
  return ::lseek(fd, offset, SEEK_DATA) == offset;
}

}  // namespace

Result<double> MeasureMapping(int threads) {
  const NamelessFile file;
  const fs::path path = file.path();
  TESSERA_RETURN_IF_ERROR(WriteBytes(path));
  TESSERA_ASSIGN_OR_RETURN(const auto pool, ThreadPool::Make(threads, {}));
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    TESSERA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::Open(path));
    const ByteSpan bytes = mapping->bytes();
    const uint64_t share = kBytes / static_cast<uint64_t>(threads) / kPage * kPage;
    std::atomic<uint64_t> used{0};  // So that no read can be left out.
    const TimePoint begin = Clock::Real().Now();
    pool->Run([&](int worker) {
      uint64_t sum = 0;
      for (uint64_t at = 0; at < share; at += kPage)
        sum += static_cast<uint64_t>(bytes[static_cast<uint64_t>(worker) * share + at]);
      used.fetch_add(sum, std::memory_order_relaxed);
    });
    best = std::max(best, static_cast<double>(share * static_cast<uint64_t>(threads)) /
                              Seconds(Clock::Real().Now() - begin));
  }
  return best;
}

double MeasureDisk(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (fd < 0) return 0;
  struct stat info {};
  const bool known = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const uint64_t size = known && info.st_size > 0 ? static_cast<uint64_t>(info.st_size) : 0;
  const std::unique_ptr<void, FreeDeleter> memory(std::aligned_alloc(kPage, kRequest));
  double rate = 0;
  if (size >= kBytes && memory != nullptr) {
    const uint64_t begin = (size - kBytes) / 2 / kPage * kPage;
    uint64_t done = 0;
    const TimePoint start = Clock::Real().Now();
    while (done < kBytes && HasData(fd, static_cast<off_t>(begin + done))) {
      const ssize_t got = ::pread(fd, memory.get(), kRequest, static_cast<off_t>(begin + done));
      if (got != static_cast<ssize_t>(kRequest)) break;
      done += kRequest;
    }
    if (done == kBytes) rate = static_cast<double>(done) / Seconds(Clock::Real().Now() - start);
  }
  ::close(fd);
  return rate;
}

}  // namespace tessera::runtime
