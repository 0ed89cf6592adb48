// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <fstream>

#include "base/bytes.h"
#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "base/topology.h"
#include "support/fixtures.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

Result<int> Half(int value) {
  if (value % 2 != 0) return Fail(InvalidArgument("odd"));
  return value / 2;
}
Status Quarter(int value, int* out) {
  TESSERA_ASSIGN_OR_RETURN(const int half, Half(value));
  TESSERA_ASSIGN_OR_RETURN(*out, Half(half));
  return {};
}

TEST(Status, MacrosPropagateErrorsAndAssignValues) {
  int out = 0;
  EXPECT_TRUE(Quarter(8, &out).ok());
  EXPECT_EQ(out, 2);
  EXPECT_EQ(Quarter(6, &out).code(), Code::kInvalidArgument);
}

TEST(Status, ContextsReadOutermostFirst) {
  const Status status = DataLoss("12 bytes").WithContext("opening x").WithContext("shard 3 of 7");
  EXPECT_EQ(status.ToString(), "shard 3 of 7: opening x: 12 bytes");
  EXPECT_EQ(status.message(), "12 bytes");
  EXPECT_THAT(status.Place(), HasSubstr("base_test.cc:"));
  EXPECT_TRUE(Status().WithContext("nothing").ok());
}

TEST(ByteReader, RefusesToReadPastTheEndAndNamesTheField) {
  ByteReader reader(AsBytes("\x01\x02\x03\x04\x05"));
  EXPECT_EQ(reader.Read<uint32_t>("magic").value(), 0x04030201u);
  const auto failed = reader.Read<uint16_t>("version");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().message(), "offset 4: version: needs 2 bytes, but only 1 are left");
  EXPECT_FALSE(reader.ReadBytes(~uint64_t{0}, "huge").has_value());
  EXPECT_TRUE(reader.Seek(5, "end").ok());
  EXPECT_FALSE(reader.Seek(6, "end").ok());
}

TEST(Bytes, AlignUpDetectsOverflow) {
  uint64_t aligned = 0;
  EXPECT_TRUE(AlignUp(65, 64, &aligned));
  EXPECT_EQ(aligned, 128u);
  EXPECT_TRUE(AlignUp(64, 64, &aligned));
  EXPECT_EQ(aligned, 64u);
  EXPECT_FALSE(AlignUp(~uint64_t{0}, 64, &aligned));
}

TEST(File, MapsReadsAndReplacesAtomically) {
  const testing::TempDir dir;
  const auto path = dir.path() / "file";
  ASSERT_TRUE(WriteFileAtomic(path, "first").ok());
  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped.has_value());
  ASSERT_TRUE(WriteFileAtomic(path, "second").ok());
  EXPECT_EQ(AsText((*mapped)->bytes()), "first") << "a mapping keeps the bytes it was made of";
  EXPECT_EQ(ReadFile(path, 6).value(), "second");
  EXPECT_EQ(ReadFile(path, 5).error().code(), Code::kResourceExhausted);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(File, DraftsAreWhereTheyAreAskedFor) {
  testing::TempDir dir;
  const auto path = dir.path() / "name";
  ASSERT_TRUE(std::filesystem::create_directory(dir.path() / "drafts"));
  ASSERT_TRUE(WriteFileAtomic(path, "text", dir.path() / "drafts").ok());
  EXPECT_EQ(testing::ReadAll(path), "text");
  EXPECT_FALSE(WriteFileAtomic(path, "other", dir.path() / "absent").ok())
      << "written there and nowhere else";
  EXPECT_EQ(testing::ReadAll(path), "text");
}

TEST(File, ErrorsNameThePath) {
  const testing::TempDir dir;
  const auto missing = MappedFile::Open(dir.path() / "missing");
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_THAT(missing.error().ToString(), HasSubstr("missing"));
  EXPECT_EQ(MappedFile::Open(dir.path()).error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(WriteFileAtomic(dir.path() / "no" / "folder", "x").ok());
}

TEST(File, WhatIsNoRegularFileIsRefusedAtOnce) {
  testing::TempDir dir;
  const auto fifo = dir.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);  // Nobody writes: waiting for it would never end.
  EXPECT_EQ(MappedFile::Open(fifo).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ReadFile(fifo, 10).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ReadFile("/dev/zero", 10).error().code(), Code::kInvalidArgument);
}

TEST(File, ADanglingLinkIsPresent) {
  testing::TempDir dir;
  EXPECT_FALSE(IsPresent(dir.path() / "link"));
  std::filesystem::create_symlink("nowhere", dir.path() / "link");
  std::filesystem::create_symlink("loop", dir.path() / "loop");
  EXPECT_TRUE(IsPresent(dir.path() / "link"));
  EXPECT_TRUE(IsPresent(dir.path() / "loop"));
  EXPECT_TRUE(IsPresent(dir.path()));
}

TEST(File, AFullDiskLeavesNothingBehind) {
  // /dev/full answers every write with ENOSPC.
  const auto writer = FileWriter::Create("/dev/full");
  ASSERT_TRUE(writer.has_value());
  EXPECT_EQ((*writer)->Append(AsBytes("x")).code(), Code::kResourceExhausted);
}

TEST(File, IsWrittenAtAnyPlaceInAnyOrder) {
  const testing::TempDir dir;
  const auto writer = FileWriter::Create(dir.path() / "x");
  ASSERT_TRUE(writer.has_value());
  EXPECT_TRUE((*writer)->WriteAt(6, AsBytes("world")).ok());
  EXPECT_TRUE((*writer)->WriteAt(0, AsBytes("hello")).ok());
  EXPECT_TRUE((*writer)->Resize(12).ok());
  EXPECT_TRUE((*writer)->Finish().ok());
  EXPECT_EQ(ReadFile(dir.path() / "x", 100).value(), std::string("hello\0world\0", 12));
  const auto full = FileWriter::Create("/dev/full");
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ((*full)->WriteAt(0, AsBytes("x")).code(), Code::kResourceExhausted);
}

TEST(Hash, MatchesThePublishedVectors) {
  EXPECT_EQ(Sha256Hex(AsBytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Random, PhiloxMatchesThePublishedKnownAnswers) {
  // Known-answer vectors of the Random123 distribution for philox4x32-10.
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, DrawsDependOnlyOnTheirKey) {
  EXPECT_EQ(UniformAt(1, 2, 3), UniformAt(1, 2, 3));
  EXPECT_NE(UniformAt(1, 2, 3), UniformAt(1, 2, 4));
  EXPECT_NE(UniformAt(1, 2, 3), UniformAt(1, 3, 3));
  EXPECT_NE(UniformAt(1, 2, 3), UniformAt(2, 2, 3));
  Random random(7);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(Topology, DescribesThisMachine) {
  const Topology topology = ReadTopology();
  EXPECT_GE(topology.cores.size(), 1u);
  EXPECT_GE(topology.DefaultThreads(), 1);
  EXPECT_LE(topology.DefaultThreads(), topology.logical_cpus);
  EXPECT_GT(topology.memory_bytes, 1u << 28);
  EXPECT_LE(topology.memory_available, topology.memory_bytes);
  Topology limited = topology;
  limited.cpu_quota = 0.5;
  EXPECT_EQ(limited.DefaultThreads(), 1);
}

TEST(Topology, UsesOnlyTheCoresOfTheAffinityMask) {
  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) last = cpu;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  const Topology topology = ReadTopology();
  ASSERT_EQ(::sched_setaffinity(0, sizeof(all), &all), 0);
  ASSERT_EQ(topology.cores.size(), 1u);
  EXPECT_EQ(topology.cores[0].cpu, last);
  EXPECT_EQ(topology.DefaultThreads(), 1);
}

TEST(Topology, ReadsTheCpuQuotaOfACgroup) {
  const testing::TempDir dir;
  const auto quota = [&](std::string_view text) {
    EXPECT_TRUE(WriteFileAtomic(dir.path() / "cpu.max", text).ok());
    return ReadCgroupQuota(dir.path().string());
  };
  EXPECT_EQ(ReadCgroupQuota(dir.path().string()), 0);
  EXPECT_EQ(quota("max 100000\n"), 0);
  EXPECT_EQ(quota("150000 100000\n"), 1.5);
  EXPECT_EQ(quota("100000 0\n"), 0);
  EXPECT_EQ(quota("-1 100000\n"), 0);
  EXPECT_EQ(quota("150000"), 0);
}

TEST(Topology, PageCacheOfACgroupIsAvailable) {
  const testing::TempDir dir;
  const auto write = [&](std::string_view name, std::string_view text) {
    ASSERT_TRUE(WriteFileAtomic(dir.path() / name, text).ok());
  };
  EXPECT_FALSE(ReadCgroupMemory(dir.path().string()).has_value());
  write("memory.max", "max\n");
  EXPECT_FALSE(ReadCgroupMemory(dir.path().string()).has_value());
  write("memory.max", "1000\n");
  write("memory.current", "900\n");
  EXPECT_EQ(ReadCgroupMemory(dir.path().string())->limit, 1000u);
  EXPECT_EQ(ReadCgroupMemory(dir.path().string())->available, 100u);
  write("memory.stat", "anon 200\nfile 700\ninactive_file 600\nactive_file 50\nslab 9\n");
  EXPECT_EQ(ReadCgroupMemory(dir.path().string())->available, 750u);
  write("memory.current", "2000\n");
  EXPECT_EQ(ReadCgroupMemory(dir.path().string())->available, 0u);
}

TEST(Topology, CapsTheInstructionSetsAtALevel) {
  Isa machine;
  machine.avx2 = machine.avx512 = machine.avx512_vnni = machine.amx_int8 = true;
  EXPECT_TRUE(CapIsa(machine, "auto")->amx_int8);
  EXPECT_EQ(CapIsa(machine, "ref")->ToString(), "baseline");
  EXPECT_EQ(CapIsa(machine, "avx2")->ToString(), "avx2+fma+f16c");
  EXPECT_EQ(CapIsa(machine, "avx512")->ToString(), "avx2+fma+f16c avx512");
  EXPECT_EQ(CapIsa(machine, "avx512_vnni")->ToString(), "avx2+fma+f16c avx512 avx512_vnni");
  EXPECT_EQ(CapIsa(machine, "avx_vnni").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(CapIsa(Isa{}, "avx2").error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(CapIsa(machine, "sse9").error().ToString(), HasSubstr("expected auto, ref, avx2"));
}

TEST(MappedFile, PagesThatAreLostReadAsZerosAndAreReported) {
  InstallMappingGuard();
  const testing::TempDir dir;
  const std::filesystem::path path = dir.path() / "weights";
  ASSERT_TRUE(WriteFileAtomic(path, std::string(3 * 4096, 'x')).ok());
  const auto mapped = *MappedFile::Open(path);
  const auto other = *MappedFile::Open(path);
  EXPECT_EQ(mapped->bytes()[2 * 4096], std::byte{'x'});
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  EXPECT_EQ(mapped->bytes()[2 * 4096], std::byte{0});
  EXPECT_EQ(mapped->bytes()[0], std::byte{'x'});
  EXPECT_EQ(mapped->CheckIntact().code(), Code::kDataLoss);
  EXPECT_THAT(mapped->CheckIntact().ToString(),
              HasSubstr("weights shrank while it was in use (it had 12288 bytes)"));
  EXPECT_TRUE(other->CheckIntact().ok()) << "nobody touched its lost pages";
}

/// Reads a page that a mapped file lost while `others` mappings are guarded.
void LosePageBeside(int others) {
  InstallMappingGuard();
  const testing::TempDir dir;
  const std::filesystem::path path = dir.path() / "weights";
  TESSERA_CHECK(WriteFileAtomic(path, std::string(2 * 4096, 'x')).ok());
  static constexpr char kByte = 0;
  std::deque<GuardedMapping> guarded;
  for (int i = 0; i < others; ++i) guarded.emplace_back(&kByte, 1);
  const auto mapped = *MappedFile::Open(path);
  TESSERA_CHECK(::truncate(path.c_str(), 0) == 0);
  EXPECT_EQ(mapped->bytes()[4096], std::byte{0});
  EXPECT_EQ(mapped->CheckIntact().code(), Code::kDataLoss);
}

TEST(MappedFileDeathTest, AsManyMappingsAreGuardedAsTheLimitSays) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  LosePageBeside(kMaxGuardedMappings - 2);
  LosePageBeside(kMaxGuardedMappings - 1);
  EXPECT_DEATH(LosePageBeside(kMaxGuardedMappings), "");
}

TEST(MappedFileDeathTest, AFaultElsewhereStillEndsTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  InstallMappingGuard();
  EXPECT_DEATH(::raise(SIGBUS), "");  // By the signal, or by a sanitizer's report of it.
}

}  // namespace
}  // namespace tessera
