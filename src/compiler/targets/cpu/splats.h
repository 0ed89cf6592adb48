// SPDX-License-Identifier: Apache-2.0
//
// Splats: weights whose sources are one repeated pattern. Where the packed bytes are one, too, the
// archive keeps them as such: a model of any size in random or constant weights is a bundle of a
// few megabytes, which is compiled, sharded, inspected and planned like any other.
#pragma once

#include <functional>
#include <optional>

#include "base/status.h"
#include "bundle/program.h"
#include "compiler/module.h"
#include "formats/parameter_index.h"

namespace tessera::compiler {

/// Makes the first `bytes.size()` bytes of the packed weight: a group, a row, or a whole vector.
using MakeFirst = std::function<Status(std::vector<std::byte>* bytes)>;

/// The pattern of all bytes of the weight; nothing when its sources are no splats, differ, or pack
/// into something that does not repeat within 16 bytes. `make_first` is called only where the
/// sources allow it.
Result<std::optional<formats::Splat>> FindSplat(const bundle::Weight& weight, const Recipe& recipe,
                                                const formats::ParameterIndex& index,
                                                const MakeFirst& make_first);

}  // namespace tessera::compiler
