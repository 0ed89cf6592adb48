// SPDX-License-Identifier: Apache-2.0
#include "base/topology.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/cores.h"

namespace tessera {
namespace {

/// The first whitespace-separated words of a small kernel file; empty when it is not there.
std::vector<std::string> Words(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

constexpr std::string_view kCgroupRoot = "/sys/fs/cgroup";

/// Folder of this process's cgroup (version 2).
std::string CgroupFolder() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("0::/")) return std::string(kCgroupRoot) + line.substr(3);
  return std::string(kCgroupRoot);
}

/// Calls `visit` with the folder of a group and of each of its parents, whose limits hold for it
/// too.
template <class Visit>
void ForGroupAndParents(const std::string& folder, const Visit& visit) {
  for (std::filesystem::path group = folder; group.string().starts_with(kCgroupRoot);
       group = group.parent_path())
    visit(group.string());
}

void ReadMemory(const std::string& folder, Topology* topology) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string name;
    uint64_t kib = 0;
    fields >> name >> kib;
    if (name == "MemTotal:") topology->memory_bytes = kib * 1024;
    if (name == "MemAvailable:") topology->memory_available = kib * 1024;
  }
  ForGroupAndParents(folder, [&](const std::string& group) {
    const std::optional<CgroupMemory> memory = ReadCgroupMemory(group);
    if (!memory.has_value()) return;
    topology->memory_bytes = std::min(topology->memory_bytes, memory->limit);
    topology->memory_available = std::min(topology->memory_available, memory->available);
  });
}

void ReadQuota(const std::string& folder, Topology* topology) {
  ForGroupAndParents(folder, [&](const std::string& group) {
    const double quota = ReadCgroupQuota(group);
    double& least = topology->cpu_quota;
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  });
}

}  // namespace

std::optional<CgroupMemory> ReadCgroupMemory(const std::string& folder) {
  const auto limit = Words(folder + "/memory.max");
  if (limit.empty() || limit[0] == "max") return std::nullopt;
  CgroupMemory memory{.limit = std::strtoull(limit[0].c_str(), nullptr, 10)};
  const auto used = Words(folder + "/memory.current");
  uint64_t held = used.empty() ? 0 : std::strtoull(used[0].c_str(), nullptr, 10);
  const auto stat = Words(folder + "/memory.stat");
  for (size_t i = 0; i + 1 < stat.size(); i += 2)
    if (stat[i] == "inactive_file" || stat[i] == "active_file" || stat[i] == "slab_reclaimable")
      held -= std::min<uint64_t>(held, std::strtoull(stat[i + 1].c_str(), nullptr, 10));
  memory.available = memory.limit > held ? memory.limit - held : 0;
  return memory;
}

double ReadCgroupQuota(const std::string& folder) {
  const auto words = Words(folder + "/cpu.max");
  if (words.size() < 2 || words[0] == "max") return 0;
  const double quota = std::strtod(words[0].c_str(), nullptr);
  const double period = std::strtod(words[1].c_str(), nullptr);
  return quota > 0 && period > 0 ? quota / period : 0;
}

int Topology::DefaultThreads() const {
  int threads = static_cast<int>(cores.size());
  if (cpu_quota > 0)
    threads = std::min(threads, static_cast<int>(std::lround(std::max(1.0, cpu_quota))));
  return std::max(1, threads);
}

Topology ReadTopology() {
  Topology topology;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof(mask), &mask) != 0) CPU_SET(0, &mask);
  topology.logical_cpus = CPU_COUNT(&mask);
  topology.cores = ReadCores(mask);
  const std::string folder = CgroupFolder();
  ReadQuota(folder, &topology);
  ReadMemory(folder, &topology);
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) {
      topology.cpu_name = line.substr(line.find(':') + 2);
      break;
    }
  return topology;
}

std::string Isa::ToString() const {
  std::string text;
  const auto add = [&](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(avx2, "avx2+fma+f16c");
  add(avx512, "avx512");
  add(avx512_vnni, "avx512_vnni");
  add(avx_vnni, "avx_vnni");
  add(avx512_bf16, "avx512_bf16");
  add(amx_int8, "amx_int8");
  return text.empty() ? "baseline" : text;
}

Result<Isa> CapIsa(const Isa& machine, std::string_view level) {
  if (level == "auto") return machine;
  Isa capped;
  bool has = true;
  if (level != "ref") {
    has = capped.avx2 = machine.avx2;
    if (level == "avx_vnni") {
      has = capped.avx_vnni = machine.avx_vnni;
    } else if (level == "avx512" || level == "avx512_vnni") {
      has = capped.avx512 = machine.avx512;
      if (level == "avx512_vnni") has = capped.avx512_vnni = machine.avx512_vnni;
    } else if (level != "avx2") {
      return Fail(InvalidArgument(fmt::format(
          "instruction set \"{:.40}\" is not known; expected auto, ref, avx2, avx_vnni, avx512 or "
          "avx512_vnni",
          level)));
    }
  }
  if (!has)
    return Fail(FailedPrecondition(
        fmt::format("this machine has no {} (it has: {})", level, machine.ToString())));
  return capped;
}

}  // namespace tessera
