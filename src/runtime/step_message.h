// SPDX-License-Identifier: Apache-2.0
//
// StepMessage: what rank 0 tells the other processes of its group to do, as bytes. Between
// processes of one build on machines of one byte order; not a format for files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "runtime/session.h"

namespace tessera::runtime {

enum class StepCommand : int64_t { kStep = 1, kCopyPage, kBackPage, kEnd };

/// Made in `out`, which keeps its memory from call to call.
void WriteStep(std::span<const Chunk> chunks, std::vector<std::byte>* out);
void WriteCommand(StepCommand command, PageId first, PageId second, std::vector<std::byte>* out);

/// A message read: chunks point into its own memory, which is kept from call to call.
struct StepMessage {
  StepCommand command = StepCommand::kEnd;
  PageId first = 0, second = 0;
  std::vector<Chunk> chunks;
  std::vector<int32_t> numbers;  // Tokens and pages of all chunks.

  /// kDataLoss for bytes that WriteStep and WriteCommand do not make, and for a command about a
  /// page beyond `page_count`. What a step says is checked by who runs it (step_rows.h).
  Status Read(ByteSpan bytes, int64_t page_count);
};

/// The size of a message, before it is read: kDataLoss for one that cannot be.
Status CheckStepBytes(int64_t bytes);

}  // namespace tessera::runtime
