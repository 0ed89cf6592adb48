// SPDX-License-Identifier: Apache-2.0
//
// The certificate of a bundle (bundle/parity.h): whether weights were rounded, and if so, what the
// caller's CertifyFn measures before the bundle is published. Measuring takes a runtime, which the
// compiler does not know; certify/ has the function.
#pragma once

#include "base/status.h"
#include "bundle/parity.h"
#include "bundle/store.h"
#include "compiler/compile.h"
#include "compiler/module.h"

namespace tessera::compiler {

/// `draft` has every file of the bundle. `known`: the certificate of a bundle with the same
/// parameters and tokenizer, or null; its figures are taken over. Errors of `input.certify` and of
/// the disk; the folder of the original is gone in any case.
Result<bundle::Parity> MakeParity(const CompileInput& input, const Module& module,
                                  const bundle::BundleDraft& draft, const bundle::Parity* known,
                                  const ProgressFn& progress);

}  // namespace tessera::compiler
