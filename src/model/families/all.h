// SPDX-License-Identifier: Apache-2.0
//
// The families' constants, for families.cc.
#pragma once

#include "model/families.h"

namespace tessera::model {

extern const Family kLlama;
extern const Family kMistral;
extern const Family kQwen2;
extern const Family kQwen3;

}  // namespace tessera::model
