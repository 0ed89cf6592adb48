// SPDX-License-Identifier: Apache-2.0
//
// FormCheck: holds finished answers against the form that was asked for. It stands between a
// Generation and the listener that writes the answer, as BestOf does. What does not fit is a bug of
// ours and no answer: the generation fails as a whole, the client gets an error, and a counter says
// so.
//
// Looking at an answer may take long, and all answers are made on one task thread: it is done on a
// thread of its own (FormWorker). The end of a choice waits for its verdict, and OnDone for all of
// them; all else goes on meanwhile. What would take too long is not looked at, and counted.
// Listeners live on the task thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "server/generation.h"
#include "server/task_thread.h"

namespace tessera::server {

/// Finished answers that had a form. Thread-safe.
class FormCounters {
 public:
  struct Counts {
    int64_t valid = 0;
    int64_t cut = 0;      // By max_tokens or by what the client gave to stop at.
    int64_t invalid = 0;  // Our bugs.
    int64_t skipped = 0;  // Not looked at: it would have taken too long.
  };
  void Add(const Counts& more);
  Counts Snapshot() const;

 private:
  mutable std::mutex mutex_;
  Counts counts_;
};

/// The thread that looks at answers. Thread-safe.
class FormWorker {
 public:
  /// kResourceExhausted when the system gives no thread.
  static Result<std::unique_ptr<FormWorker>> Start();
  /// False once stopped: then the task was not taken.
  bool Post(TaskThread::Task task);
  /// Runs what was posted, then joins. Any number of times.
  void Stop();

 private:
  explicit FormWorker(std::unique_ptr<TaskThread> thread) : thread_(std::move(thread)) {}
  std::mutex mutex_;
  std::unique_ptr<TaskThread> thread_;  // Null once stopped.
};

/// What a check works with: all outlive the answers.
struct FormSetting {
  FormCounters* counters;
  FormWorker* worker;
  TaskThread* tasks;
  const Clock* clock;
  /// On the worker. kResourceExhausted: it would take too long to tell.
  std::function<Status(const text::Grammar&, std::string_view)> validate =
      [](const text::Grammar& grammar, std::string_view text) { return grammar.Validate(text); };
};

/// `listener` itself when no choice has a form.
std::unique_ptr<GenerationListener> MakeFormCheck(std::unique_ptr<GenerationListener> listener,
                                                  const std::vector<ChoiceSpec>& choices,
                                                  const FormSetting& setting);

}  // namespace tessera::server
