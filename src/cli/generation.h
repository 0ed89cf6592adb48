// SPDX-License-Identifier: Apache-2.0
//
// One answer at a time for the terminal: submits a prompt to an engine and hands text to a callback
// as it is made. Ctrl-C (InterruptFlag) stops the answer, not the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "text/tokenizer.h"

namespace tessera::cli {

/// Counts Ctrl-C while it lives; the previous handler comes back at the end. One at a time.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  /// True once for each Ctrl-C since the last call.
  bool Take();
  /// Waits until `fd` can be read (true) or Ctrl-C came (false), also one that came before the call
  /// or was handled on another thread: neither would end a read.
  bool WaitForInput(int fd);
};

struct Answer {
  std::string text;
  engine::Finish finish;
  bool interrupted = false;  // By Ctrl-C.
  /// Tokens a second of the decode phase; 0 for fewer than two tokens.
  double decode_rate = 0;
  double prefill_rate = 0;  // Of the prompt tokens that were computed.
};

struct GenerateInput {
  std::vector<text::TokenId> prompt;
  engine::SamplingParams sampling;
  engine::StopParams stop;
};

/// Runs to the end or to Ctrl-C. `on_text` gets whole characters, on the calling thread. When it
/// fails, nobody takes the answer any more: the generation is cancelled and its error returned.
Result<Answer> Generate(engine::Engine* engine,
                        const std::shared_ptr<const text::Tokenizer>& tokenizer,
                        GenerateInput input, InterruptFlag* interrupt,
                        const std::function<Status(std::string_view)>& on_text);

}  // namespace tessera::cli
