// SPDX-License-Identifier: Apache-2.0
#include "base/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"

namespace tessera {
namespace {

AddressRange RangeOf(const void* begin, uint64_t bytes) {
  return {reinterpret_cast<uint64_t>(begin), bytes};
}

TEST(ProcessMemory, SumsToItsKinds) {
  const auto memory = ReadProcessMemory();
  ASSERT_TRUE(memory.has_value()) << memory.error().ToString();
  EXPECT_GT(memory->anonymous_bytes, 0u);
  EXPECT_GT(memory->file_bytes, 0u) << "the program itself";
  EXPECT_EQ(memory->resident_bytes,
            memory->anonymous_bytes + memory->file_bytes + memory->shared_bytes);
}

TEST(ProcessMemory, OnlyWhatWasTouchedIsResident) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  constexpr uint64_t kPages = 10'000;  // More than one read of the table.
  void* const memory = ::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  (void)::madvise(memory, kPages * page, MADV_NOHUGEPAGE);
  const AddressRange range = RangeOf(memory, kPages * page);
  EXPECT_EQ(ResidentBytes(range).value(), 0u);
  for (const uint64_t touched : {uint64_t{0}, uint64_t{5000}, kPages - 1})
    std::memset(static_cast<char*>(memory) + touched * page, 1, 1);
  EXPECT_EQ(ResidentBytes(range).value(), 3 * page);
  EXPECT_EQ(ResidentBytes(RangeOf(memory, 1)).value(), page) << "whole pages";
  EXPECT_EQ(ResidentBytes(RangeOf(memory, 0)).value(), 0u);
  ::munmap(memory, kPages * page);
}

TEST(ProcessMemory, FindsWhereAFileIsMapped) {
  const auto path =
      std::filesystem::temp_directory_path() / ("tessera mapped " + std::to_string(::getpid()));
  std::ofstream(path) << std::string(100'000, 'x');
  EXPECT_TRUE(MappingsOf(path).value().empty());
  {
    const auto mapped = MappedFile::Open(path);
    ASSERT_TRUE(mapped.has_value());
    const auto ranges = MappingsOf(path);
    ASSERT_TRUE(ranges.has_value());
    ASSERT_EQ(ranges->size(), 1u);
    EXPECT_EQ(ranges->front().begin, reinterpret_cast<uint64_t>((*mapped)->bytes().data()));
    EXPECT_GE(ranges->front().bytes, 100'000u);
  }
  EXPECT_TRUE(MappingsOf(path).value().empty());
  std::filesystem::remove(path);
  EXPECT_FALSE(MappingsOf(path).has_value()) << "there is no such file";
}

TEST(ProcessUse, CountsDescriptorsAndTime) {
  const auto before = ReadProcessUse();
  ASSERT_TRUE(before.has_value()) << before.error().ToString();
  const int fd = ::dup(STDOUT_FILENO);
  const auto after = ReadProcessUse();
  ::close(fd);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->open_fds, before->open_fds + 1);
  EXPECT_GE(after->max_fds, after->open_fds);
  EXPECT_GE(after->cpu_seconds, before->cpu_seconds);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LE(after->start_unix_seconds, now + 1);
  EXPECT_GT(after->start_unix_seconds, now - 3600) << "this test began within the hour";
  EXPECT_EQ(after->start_unix_seconds, before->start_unix_seconds) << "it does not wander";
}

}  // namespace
}  // namespace tessera
