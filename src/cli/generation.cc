// SPDX-License-Identifier: Apache-2.0
#include "cli/generation.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <variant>

#include "engine/output_processor.h"

namespace tessera::cli {
namespace {

std::atomic<int> g_interrupts{0};  // Signal handlers reach nothing but globals.
int g_wake[2] = {-1, -1};          // A byte is written for each interrupt.
struct sigaction g_previous;

void OnInterrupt(int) {
  const int saved = errno;
  g_interrupts.fetch_add(1, std::memory_order_relaxed);
  // A full pipe wakes as well as one more byte; without a pipe only the count is left.
  [[maybe_unused]] const ssize_t written = ::write(g_wake[1], "", 1);
  errno = saved;
}

/// Hands the engine's events to the waiting thread.
class QueueSink : public engine::Sink {
 public:
  using Event = std::variant<engine::TokenOutput, engine::Finish>;

  void OnToken(engine::TokenOutput token) override { Push(std::move(token)); }
  void OnFinish(engine::Finish finish) override { Push(std::move(finish)); }

  /// Nothing when `patience` passed without an event.
  std::optional<Event> Wait(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!ready_.wait_for(lock, patience, [&] { return !events_.empty(); })) return std::nullopt;
    Event event = std::move(events_.front());
    events_.erase(events_.begin());
    return event;
  }

 private:
  void Push(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    ready_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Event> events_;
};

double Rate(int64_t tokens, Duration time) {
  return tokens > 0 && time > Duration::zero() ? static_cast<double>(tokens) / Seconds(time) : 0;
}

}  // namespace

InterruptFlag::InterruptFlag() {
  g_interrupts = 0;
  if (::pipe2(g_wake, O_NONBLOCK | O_CLOEXEC) != 0) g_wake[0] = g_wake[1] = -1;
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);  // No SA_RESTART: a read from the terminal must return.
  ::sigaction(SIGINT, &action, &g_previous);
}

InterruptFlag::~InterruptFlag() {
  ::sigaction(SIGINT, &g_previous, nullptr);
  for (int& fd : g_wake) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
}

bool InterruptFlag::Take() {
  char bytes[64];
  while (g_wake[0] >= 0 && ::read(g_wake[0], bytes, sizeof(bytes)) > 0) continue;
  return g_interrupts.exchange(0, std::memory_order_relaxed) > 0;
}

bool InterruptFlag::WaitForInput(int fd) {
  pollfd fds[2] = {{fd, POLLIN, 0}, {g_wake[0], POLLIN, 0}};  // Poll skips negative numbers.
  while (::poll(fds, 2, -1) < 0)
    if (errno != EINTR) return true;  // The read will say what is wrong.
  return fds[1].revents == 0;
}

Result<Answer> Generate(engine::Engine* engine,
                        const std::shared_ptr<const text::Tokenizer>& tokenizer,
                        GenerateInput input, InterruptFlag* interrupt,
                        const std::function<Status(std::string_view)>& on_text) {
  constexpr size_t kPromptTail = 12;  // Enough for any detokenizer's look-behind.
  const size_t tail = std::min(input.prompt.size(), kPromptTail);
  engine::OutputProcessor output(text::Detokenizer::Make(tokenizer, /*skip_special=*/true), {},
                                 std::span(input.prompt).last(tail));
  const auto sink = std::make_shared<QueueSink>();
  engine::Request request;
  request.prompt = std::move(input.prompt);
  request.sampling = std::move(input.sampling);
  request.stop = std::move(input.stop);
  request.arrival = Clock::Real().Now();
  request.sink = sink;
  TESSERA_ASSIGN_OR_RETURN(const engine::RequestId id, engine->Submit(std::move(request)));

  Answer answer;
  Status taken;
  const auto give = [&](const std::string& text) {
    answer.text += text;
    if (text.empty() || !taken.ok()) return;
    taken = on_text(text);
    if (!taken.ok()) engine->Cancel(id);
  };
  for (;;) {
    auto event = sink->Wait(std::chrono::milliseconds(50));
    if (interrupt->Take()) {
      answer.interrupted = true;
      engine->Cancel(id);
    }
    if (!event.has_value()) continue;
    if (auto* token = std::get_if<engine::TokenOutput>(&*event)) {
      if (answer.interrupted) continue;
      TESSERA_ASSIGN_OR_RETURN(const engine::OutputDelta delta, output.OnToken(std::move(*token)));
      give(delta.text);
    } else {
      answer.finish = std::get<engine::Finish>(std::move(*event));
      break;
    }
  }
  TESSERA_ASSIGN_OR_RETURN(const engine::OutputDelta rest, output.OnEnd());
  if (!answer.interrupted) give(rest.text);
  if (!taken.ok()) return Fail(taken);
  if (!answer.interrupted && !answer.finish.status.ok()) return Fail(answer.finish.status);
  answer.prefill_rate =
      Rate(answer.finish.prompt_tokens - answer.finish.cached_tokens, answer.finish.prefill);
  answer.decode_rate = Rate(answer.finish.generated_tokens - 1, answer.finish.decode);
  return answer;
}

}  // namespace tessera::cli
