// SPDX-License-Identifier: Apache-2.0
//
// EngineCore and constrained sequences: a sequence whose mask is late when its logits are there
// loses that row. It is held until the mask is ready, then the row is computed again: its bytes are
// the same (ARCHITECTURE.md, "Determinism"), and nobody else waits.
#include <algorithm>

#include "base/check.h"
#include "engine/engine_core.h"

namespace tessera::engine {

void EngineCore::SettleMasks() {
  for (auto& sequence : sequences_) {
    if (sequence->mask == nullptr || !sequence->mask->is_ready()) continue;
    sequence->awaits_mask = false;
    // A form that is complete at once: what the client wants of the prompt comes first.
    if (!sequence->is_prompt_done && sequence->mask->status().ok()) continue;
    if (EndByMask(sequence.get())) {
      sequence.reset();
    } else if (sequence->generated() > 0 &&
               sequence->generated() >= sequence->request.stop.max_tokens) {
      Retire(sequence.get(), FinishReason::kLength, {}, -1);
      sequence.reset();
    }
  }
  RemoveRetired();
  UpdateGauges();
}

bool EngineCore::IsMaskLate(Sequence* sequence) {
  if (sequence->mask == nullptr || sequence->request.stop.max_tokens == 0) return false;
  masks_.Wait(*sequence->mask, mask_deadline_);
  if (sequence->mask->is_ready()) return false;
  sequence->awaits_mask = true;
  ++stats_.late_masks;
  return true;
}

bool EngineCore::EndByMask(Sequence* sequence) {
  if (sequence->mask == nullptr) return false;
  const SequenceMask& mask = *sequence->mask;
  TESSERA_CHECK(mask.is_ready());
  if (!mask.status().ok()) {
    Retire(sequence, FinishReason::kError, mask.status(), -1);
    return true;
  }
  if (!mask.next().may_go_on) {
    Retire(sequence, FinishReason::kStop, {}, -1);
    return true;
  }
  return false;
}

bool EngineCore::is_stalled() const {
  if (!is_stalled_) return false;
  const TimePoint now = clock_->Now();
  return std::ranges::none_of(sequences_, [now](const auto& sequence) {
    if (sequence->awaits_mask) return sequence->mask->is_ready();
    return sequence->fetch.has_value() &&
           (sequence->fetch->HasNews() || !sequence->fetch->IsAwaited(now));
  });
}

}  // namespace tessera::engine
