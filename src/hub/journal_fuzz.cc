// SPDX-License-Identifier: Apache-2.0
//
// Any bytes in the place of a download's state are refused, or give ranges inside the file; written
// anew they say the same to the boot that writes and the synced part of it to every other.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "hub/journal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tessera::hub::ReadJournal;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view boot : {std::string_view("one"), std::string_view()}) {
    const auto journal = ReadJournal(text, boot);
    if (!journal.has_value()) return 0;
    TESSERA_CHECK(journal->present.end() <= journal->bytes);
    TESSERA_CHECK(journal->synced.bytes() <= journal->present.bytes());
    const auto fresh = tessera::hub::WriteJournal(*journal, "two");
    const auto same = ReadJournal(fresh.text, "two");
    const auto later = ReadJournal(fresh.text, "three");
    TESSERA_CHECK(same.has_value() && later.has_value());
    TESSERA_CHECK(same->IsFor(journal->bytes, journal->validator));
    TESSERA_CHECK(same->present.Ranges() == journal->present.Ranges());
    TESSERA_CHECK(later->present.Ranges() == journal->synced.Ranges());
  }
  return 0;
}
