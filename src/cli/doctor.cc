// SPDX-License-Identifier: Apache-2.0
//
// tessera doctor: what this machine can do, measured or asked, in one table.
#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>

#include "cli/environment.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

#include "base/json.h"
#include "base/topology.h"
#include "runtime/machine_probe.h"

namespace tessera::cli {
namespace {

struct Options {
  bool json = false;
  bool offline = false;
  std::string cache_dir;
};

/// "200", or the reason why the hub cannot be reached.
std::string AskHub(const std::string& endpoint) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (curl == nullptr) return "libcurl does not start";
  std::array<char, CURL_ERROR_SIZE> reason{};
  curl_easy_setopt(curl.get(), CURLOPT_URL, endpoint.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOBODY, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, 3000L);
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, reason.data());
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return reason[0] != '\0' ? reason.data() : curl_easy_strerror(code);
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  return fmt::format("answers {}", status);
}

std::string FindTool(const std::string& name) {
  std::string path = Environment("PATH").value_or("/usr/bin:/bin");
  path += ':';
  for (size_t begin = 0, end; (end = path.find(':', begin)) != std::string::npos; begin = end + 1) {
    const std::string candidate = path.substr(begin, end - begin) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

Result<json::Object> Examine(const Options& options) {
  const Topology topology = ReadTopology();
  json::Object report;
  report["version"] = TESSERA_VERSION;
  report["cpu"] = {
      {"name", topology.cpu_name},      {"isa", ReadIsa().ToString()},
      {"cores", topology.cores.size()}, {"logical_cpus", topology.logical_cpus},
      {"quota", topology.cpu_quota},    {"threads_by_default", topology.DefaultThreads()}};
  TESSERA_ASSIGN_OR_RETURN(const double by_one, runtime::MeasureReadBandwidth(topology, 1));
  TESSERA_ASSIGN_OR_RETURN(const double by_all,
                           runtime::MeasureReadBandwidth(topology, topology.DefaultThreads()));
  report["memory"] = {{"bytes", topology.memory_bytes},
                      {"available", topology.memory_available},
                      {"read_bytes_per_second_1_thread", by_one},
                      {"read_bytes_per_second", by_all}};
  json::Object tools;
  for (const char* tool : {"iree-compile", "curl", "mpirun", "kubectl", "psql"})
    tools[tool] = FindTool(tool);
  report["tools"] = std::move(tools);
  const std::string endpoint = HubEndpoint();
  report["hub"] = {{"endpoint", endpoint},
                   {"state", options.offline ? "not asked (--offline)" : AskHub(endpoint)}};
  TESSERA_ASSIGN_OR_RETURN(std::filesystem::path cache, CacheFolder(options.cache_dir));
  report["cache"] = {{"folder", cache.string()}};
  while (!std::filesystem::exists(cache) && cache.has_parent_path() && cache != cache.parent_path())
    cache = cache.parent_path();
  struct statvfs disk {};
  const bool known = ::statvfs(cache.c_str(), &disk) == 0;
  report["cache"].get_object()["free_bytes"] =
      known ? json::Value(static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize) : json::Value();
  report["cache"].get_object()["writable"] = ::access(cache.c_str(), W_OK) == 0;
  return report;
}

double Number(const json::Object& object, const char* key) {
  return object.at(key).to_number<double>();
}

void PrintTable(const json::Object& report) {
  const auto line = [](std::string_view name, const std::string& text) {
    fmt::print("{:<10} {}\n", name, text);
  };
  const auto text = [](const json::Value& value) { return std::string(value.get_string()); };
  const json::Object& cpu = report.at("cpu").get_object();
  line("tessera", text(report.at("version")));
  line("cpu",
       fmt::format(
           "{}, {} cores ({} logical){}, {}", text(cpu.at("name")), Number(cpu, "cores"),
           Number(cpu, "logical_cpus"),
           Number(cpu, "quota") > 0 ? fmt::format(", quota {:.2f}", Number(cpu, "quota")) : "",
           text(cpu.at("isa"))));
  line("threads", fmt::format("{} by default", Number(cpu, "threads_by_default")));
  const json::Object& memory = report.at("memory").get_object();
  line("memory",
       fmt::format("{}, {} available", HumanBytes(static_cast<uint64_t>(Number(memory, "bytes"))),
                   HumanBytes(static_cast<uint64_t>(Number(memory, "available")))));
  line("bandwidth", fmt::format("{:.1f} GB/s read by one thread, {:.1f} GB/s by all",
                                Number(memory, "read_bytes_per_second_1_thread") / 1e9,
                                Number(memory, "read_bytes_per_second") / 1e9));
  const json::Object& cache = report.at("cache").get_object();
  line("cache", fmt::format("{}, {} free{}", text(cache.at("folder")),
                            cache.at("free_bytes").is_null()
                                ? "unknown"
                                : HumanBytes(static_cast<uint64_t>(Number(cache, "free_bytes"))),
                            cache.at("writable").get_bool() ? "" : ", NOT writable"));
  const json::Object& hub = report.at("hub").get_object();
  line("hub", fmt::format("{}: {}", text(hub.at("endpoint")), text(hub.at("state"))));
  for (const auto& [tool, path] : report.at("tools").get_object())
    line("tool", fmt::format("{}: {}", std::string_view(tool),
                             path.get_string().empty() ? "not found" : text(path)));
}

}  // namespace

void AddDoctor(CLI::App* app, Context* context) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app->add_subcommand(
      "doctor", "What this machine can do: ISA, cores, memory, bandwidth, tools, hub, disk");
  verb->add_flag("--json", options->json, "Facts as JSON on stdout");
  verb->add_flag("--offline", options->offline, "Do not ask the hub");
  verb->add_option("--cache-dir", options->cache_dir, "Cache folder to look at");
  verb->callback([options, context] {
    RunVerb(context, [&]() -> Status {
      TESSERA_ASSIGN_OR_RETURN(const json::Object report, Examine(*options));
      if (options->json) {
        fmt::print("{}", json::SerializePretty(report));
      } else {
        PrintTable(report);
      }
      return {};
    });
  });
}

}  // namespace tessera::cli
