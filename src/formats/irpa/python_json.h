// SPDX-License-Identifier: Apache-2.0
//
// JSON as Python's json.dumps writes it, byte for byte: what sharktank's blobs consist of.
#pragma once

#include <string>

#include "base/json.h"

namespace tessera::formats::irpa {

/// json.dumps(value, indent=indent): non-ASCII as \uXXXX, doubles in Python's shortest form
/// ("500000.0", "1e-05"). `indent` 0 means none, with ", " and ": " as separators. Texts must be
/// valid UTF-8.
std::string PythonJson(const json::Value& value, int indent);

/// repr(value) of a double: the part of it that others print, too.
std::string PythonFloat(double value);

}  // namespace tessera::formats::irpa
