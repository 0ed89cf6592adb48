// SPDX-License-Identifier: Apache-2.0
//
// Identity: which compilation an archive is of. The files of one bundle carry the same 16 hex
// digits, the export key (store.h), as an entry of eight repeated bytes that takes no room beside
// its line in the table. So a rank's file of another model of the same shape is noticed when it is
// opened, without hashing it. Archives from before there were identities have none. Values; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "formats/parameter_index.h"

namespace tessera::bundle {

/// The name of the entry in the archive `file`: "tessera.identity", in "model.rank3.irpa"
/// "tessera.identity.rank3", since archives that are opened together share no name.
std::string IdentityEntry(std::string_view file);

/// Its contents. kInvalidArgument for what is not 16 lower-case hex digits.
Result<formats::Splat> IdentitySplat(std::string_view identity);

/// That all files of `archives` are of one compilation and, unless `expected` is empty, of that
/// one; files that all have no identity pass. kDataLoss names the file that differs.
Status CheckIdentity(const formats::ParameterIndex& archives, std::string_view expected);

}  // namespace tessera::bundle
