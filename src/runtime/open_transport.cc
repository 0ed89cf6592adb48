// SPDX-License-Identifier: Apache-2.0
#include "runtime/open_transport.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace tessera::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModule = "libtessera_mpi.so";

/// Beside the program, or where it is installed.
fs::path ModulePath() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place : {folder / kModule, folder / ".." / "lib" / kModule})
    if (fs::exists(place, error)) return place;
  return {};
}

}  // namespace

Result<std::shared_ptr<Transport>> OpenTransport(int processes) {
  const fs::path path = ModulePath();
  if (path.empty())
    return Fail(Unimplemented(fmt::format(
        "{} processes were started, and this build has no MPI ({} is not beside the program); "
        "install libopenmpi-dev and build again, or start one process with --tp N",
        processes, kModule)));
  // Open MPI's own plugins look for its symbols among the global ones.
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr)
    return Fail(Unavailable(fmt::format("loading {}: {}", path.string(), ::dlerror())));
  auto* make = reinterpret_cast<MakeTransportFn>(::dlsym(module, kMakeTransport));
  Transport* transport = make != nullptr ? make() : nullptr;
  if (transport == nullptr)
    return Fail(Unavailable(fmt::format("{}: MPI did not start", path.string())));
  return std::shared_ptr<Transport>(transport);
}

}  // namespace tessera::runtime
