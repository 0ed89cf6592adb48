// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/passes.h"
#include "graph/verify.h"

namespace tessera::compiler {

Status VerifyGraph(Module* module) {
  return graph::Verify(module->graph);
}

}  // namespace tessera::compiler
