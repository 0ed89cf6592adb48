// SPDX-License-Identifier: Apache-2.0
#include "cli/environment.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tessera::cli {

std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<std::filesystem::path> HomeFolder() {
  if (const auto home = Environment("HOME")) return std::filesystem::path(*home);
  const passwd* user = ::getpwuid(::getuid());  // Before other threads are made.
  if (user != nullptr && user->pw_dir != nullptr && *user->pw_dir != '\0')
    return std::filesystem::path(user->pw_dir);
  return Fail(FailedPrecondition(
      "this user has no home folder for the cache: name a folder with --cache-dir or "
      "$TESSERA_CACHE"));
}

Result<std::filesystem::path> CacheFolder(const std::string& flag) {
  using Path = std::filesystem::path;
  if (!flag.empty()) return Path(flag);
  if (const auto cache = Environment("TESSERA_CACHE")) return Path(*cache);
  if (const auto xdg = Environment("XDG_CACHE_HOME"))
    return std::filesystem::path(*xdg) / "tessera";
  TESSERA_ASSIGN_OR_RETURN(const Path home, HomeFolder());
  return home / ".cache" / "tessera";
}

namespace {

/// The number that one of two variables holds: of Open MPI, or of MPICH, Intel MPI and Slurm's PMI.
int JobNumber(const char* open_mpi, const char* pmi, int otherwise) {
  for (const char* name : {open_mpi, pmi}) {
    const std::optional<std::string> text = Environment(name);
    if (!text) continue;
    int number = otherwise;
    std::from_chars(text->data(), text->data() + text->size(), number);
    return std::max(number, otherwise);
  }
  return otherwise;
}

}  // namespace

int JobSize() {
  return JobNumber("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", 1);
}

int JobRank() {
  return JobNumber("OMPI_COMM_WORLD_RANK", "PMI_RANK", 0);
}

int JobSizeHere() {
  return JobNumber("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", 1);
}

std::string HubEndpoint() {
  std::string endpoint = Environment("HF_ENDPOINT").value_or("https://huggingface.co");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

}  // namespace tessera::cli
