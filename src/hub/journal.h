// SPDX-License-Identifier: Apache-2.0
//
// Journal: what is known of a file that is being downloaded, as lines that are only ever appended:
//
//   tessera-download 1 SIZE VALIDATOR      which bytes these are (validator: hash or ETag)
//   boot ID                                the run of the machine that writes this journal
//   range BEGIN END                        these bytes were given to the kernel before this line
//   synced COUNT                           of the first COUNT ranges the bytes are on the disk
//
// Durability rule: a range counts if a `synced` covers it, or if the boot that wrote it is still
// running: what a killed process wrote is in the page cache, what a crashed machine had not synced
// may be lost. So kill -9 costs no byte that had a line, a power cut costs what came after the last
// sync, and the file's hash has the last word in any case. Whoever goes on with a download begins
// with a new journal that says the same (WriteJournal).
// A last line without its end was cut by a crash and does not count, nor does what follows a line
// that cannot be read. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "hub/range_set.h"

namespace tessera::hub {

struct Journal {
  uint64_t bytes = 0;     // Of the whole file.
  std::string validator;  // Printable, no spaces.
  RangeSet present;       // That count.
  RangeSet synced;        // Those of them that are on the disk.

  /// What is there is worth something only for the same bytes.
  bool IsFor(uint64_t size, std::string_view wanted) const {
    return bytes == size && validator == wanted;
  }
};

/// kDataLoss when the first lines are none of ours. `boot` is the id of the running boot; empty
/// when that is not known.
Result<Journal> ReadJournal(std::string_view text, std::string_view boot);

/// A fresh text that says the same, and how many ranges it has. Requires journal.synced to be on
/// the disk, as ReadJournal gave it.
struct JournalText {
  std::string text;
  uint64_t ranges = 0;
};
JournalText WriteJournal(const Journal& journal, std::string_view boot);

std::string JournalRangeLine(ByteRange range);
std::string JournalSyncedLine(uint64_t ranges);

/// Makes a validator one word: other bytes become %xx; nothing becomes "-".
std::string ValidatorWord(std::string_view validator);

}  // namespace tessera::hub
