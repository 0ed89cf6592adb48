// SPDX-License-Identifier: Apache-2.0
#include "cli/server_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <mutex>
#include <utility>

#include "base/draft.h"
#include "base/thread.h"

namespace tessera::cli {
namespace {

[[noreturn]] void EndProcess(int code) {
  RemoveOwnDrafts();
  ::_exit(code);
}

}  // namespace

struct ServerSignals::State {
  void Hangup() {
    const std::lock_guard lock(mutex);
    is_pending = !reload;
    if (reload) reload();
  }

  std::atomic<bool> is_serving{false};
  std::promise<int> first;
  std::mutex mutex;  // Held while it reloads.
  std::function<void()> reload;
  bool is_pending = false;
};

ServerSignals::ServerSignals() : state_(std::make_shared<State>()) {}
ServerSignals::~ServerSignals() {
  OnHangup(nullptr);
}

Status ServerSignals::Start() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  TESSERA_ASSIGN_OR_RETURN(auto thread, StartThread("signals", [signals, state = state_] {
                             for (bool is_first = true;;) {
                               int signal = 0;
                               ::sigwait(&signals, &signal);
                               if (signal == SIGHUP) {
                                 state->Hangup();
                                 continue;
                               }
                               if (!state->is_serving) EndProcess(128 + signal);
                               if (!std::exchange(is_first, false)) EndProcess(1);
                               state->first.set_value(signal);
                             }
                           }));
  thread.detach();
  return {};
}

void ServerSignals::OnHangup(std::function<void()> reload) {
  const std::lock_guard lock(state_->mutex);
  state_->reload = std::move(reload);
  if (state_->reload && std::exchange(state_->is_pending, false)) state_->reload();
}

void ServerSignals::BeginServing() {
  state_->is_serving = true;
}

int ServerSignals::Wait() {
  return state_->first.get_future().get();
}

}  // namespace tessera::cli
