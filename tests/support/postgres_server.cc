// SPDX-License-Identifier: Apache-2.0
#include "support/postgres_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "support/fixtures.h"

namespace tessera::testing {
namespace {

class Server {
 public:
  Server() : owner_(getpid()) {
    const std::string script = SourceDir() / "tests/support/postgres_server.sh";
    const std::string folder = dir_.path(), log = folder + "/log";
    process_ = fork();
    if (process_ == 0) {
      const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      (void)dup2(out, STDOUT_FILENO);
      (void)dup2(out, STDERR_FILENO);
      execl(script.c_str(), script.c_str(), folder.c_str(), nullptr);
      _exit(127);
    }
    // The last thing that it writes before it serves.
    for (int i = 0; i < 6000 && waitpid(process_, nullptr, WNOHANG) == 0; ++i) {
      if (std::filesystem::exists(log) &&
          ReadAll(log).find("ready to accept connections") != std::string::npos) {
        is_up_ = true;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "no PostgreSQL: " << ReadAll(log);
  }
  ~Server() {
    if (getpid() != owner_) return;  // A child of the test.
    kill(process_, SIGQUIT);
    waitpid(process_, nullptr, 0);
  }
  std::string Url(std::string_view database) const {
    if (!is_up_) return {};
    return "postgres://postgres@/" + std::string(database) + "?host=" + dir_.path().string();
  }

 private:
  TempDir dir_;
  const pid_t owner_;
  pid_t process_ = -1;
  bool is_up_ = false;
};

}  // namespace

std::string PostgresUrl(std::string_view database) {
  static const Server server;
  return server.Url(database);
}

}  // namespace tessera::testing
