// SPDX-License-Identifier: Apache-2.0
#include "engine/stats.h"

namespace tessera::engine {

std::span<const double> LatencyBounds() {
  static constexpr double kBounds[] = {
      0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3,  0.5,  0.75,
      1,     1.5,   2.5,   5,    7.5,  10,   20,   40,   80,   160, 320,  640, 1280, 2560, 7680};
  return kBounds;
}

std::span<const double> TokenBounds() {
  static constexpr double kBounds[] = {1,   2,   5,   10,  20,  50,  100, 200, 500, 1e3,
                                       2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6};
  return kBounds;
}

std::span<const double> BatchBounds() {
  static constexpr double kBounds[] = {1,   2,   4,   8,    16,   32,   64,
                                       128, 256, 512, 1024, 2048, 4096, 8192};
  return kBounds;
}

void CountFinish(const Request& request, const Finish& finish, TimePoint now, Stats* stats) {
  switch (finish.reason) {
    case FinishReason::kStop:
      ++stats->finished_stop;
      break;
    case FinishReason::kLength:
      ++stats->finished_length;
      break;
    case FinishReason::kCancelled:
    case FinishReason::kDeadline:
      ++stats->finished_cancelled;
      return;
    case FinishReason::kError:
      ++stats->finished_error;
      return;
  }
  stats->e2e_latency.Observe(Seconds(now - request.arrival));
  stats->queue_time.Observe(Seconds(finish.queue));
  stats->prefill_time.Observe(Seconds(finish.prefill));
  stats->decode_time.Observe(Seconds(finish.decode));
  stats->inference_time.Observe(Seconds(finish.prefill + finish.decode));
  stats->request_prompt_tokens.Observe(static_cast<double>(finish.prompt_tokens));
  stats->request_generation_tokens.Observe(static_cast<double>(finish.generated_tokens));
  stats->request_max_tokens.Observe(static_cast<double>(request.stop.max_tokens));
}

}  // namespace tessera::engine
